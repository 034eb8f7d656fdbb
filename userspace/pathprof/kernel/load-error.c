// SPDX-License-Identifier: GPL-2.0-only
/*
 * Why the kernel or libbpf refused the BPF programs: the one place that hears
 * libbpf's messages.  PATHPROF_DEBUG shows them all.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/libbpf.h>
#include "kernel/load-error.h"

/* libbpf's own messages would bury ours; keep the last one for the reason. */
static char libbpf_last[256];

static int keep_message(enum libbpf_print_level level, const char *format,
			va_list args)
{
	va_list copy;

	va_copy(copy, args);
	if (level == LIBBPF_WARN)
		vsnprintf(libbpf_last, sizeof(libbpf_last), format, copy);
	va_end(copy);
	if (getenv("PATHPROF_DEBUG"))
		vfprintf(stderr, format, args);
	return 0;
}

void load_error__listen(void)
{
	libbpf_set_print(keep_message);
}

int load_error__explain(int rc, char *err, size_t len)
{
	if (rc == -EPERM) {
		snprintf(err, len, "the kernel refuses to load BPF programs "
			 "for this user (%s); recording needs root, or CAP_BPF "
			 "and CAP_PERFMON, and BPF that is not locked down",
			 strerror(-rc));
		return -EOPNOTSUPP;
	}
	libbpf_last[strcspn(libbpf_last, "\n")] = 0;
	snprintf(err, len, "the kernel did not take the BPF programs: %s (%s)",
		 strerror(-rc), libbpf_last);
	return -EOPNOTSUPP;
}
