/* SPDX-License-Identifier: GPL-2.0-only */
/* Why BPF programs were refused. */
#ifndef PATHPROF_LOAD_ERROR_H
#define PATHPROF_LOAD_ERROR_H

#include <stddef.h>

/* Keep libbpf's messages instead of printing them. */
void load_error__listen(void);
/* The reason for an errno of loading, into err; returns -EOPNOTSUPP. */
int load_error__explain(int rc, char *err, size_t len);

#endif
