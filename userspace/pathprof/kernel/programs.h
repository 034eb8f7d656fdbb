/* SPDX-License-Identifier: GPL-2.0-only */
/* The BPF programs of others that hooks can be attached to: those of tc. */
#ifndef PATHPROF_PROGRAMS_H
#define PATHPROF_PROGRAMS_H

#include <stddef.h>
#include <stdint.h>

#define PROGRAMS_MAX	8	/* as many as stack-hooks.bpf.h has hooks */

struct program {
	uint32_t id;
	int function;	/* its first one, in its own type information */
	char name[40];
};

/* Those of tc (clsact, tcx) that are loaded; how many were stored. */
size_t programs__find(struct program *programs, size_t n);

#endif
