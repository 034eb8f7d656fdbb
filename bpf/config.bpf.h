/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The configuration from userspace.  It is constant once the programs are
 * loaded, so that the verifier removes the code of what was not asked for.
 */
#ifndef PATHPROF_CONFIG_BPF_H
#define PATHPROF_CONFIG_BPF_H

#include "vmlinux.h"
#include "pathprof.h"

const volatile struct pathprof_config config = { .sample = 1 };

#endif
