/* SPDX-License-Identifier: GPL-2.0-only */
/* Which hooks the running kernel has. */
#ifndef PATHPROF_HOOKS_H
#define PATHPROF_HOOKS_H

#include "kernel/drops.h"
#include "profile/profile.h"

#define BTF_PATH "/sys/kernel/btf/vmlinux"

/* The type information that has the function or tracepoint of a hook. */
struct hook_place {
	int id;			/* in it; 0: nowhere */
	const char *module;	/* NULL: the kernel's, or a program's */
};

/*
 * Fill state and why of n hooks whose name and type are set, their places,
 * and the kernel's names of drop reasons.  Whether functions can be hooked is
 * read from the symbol table, which takes 0.2 s; if that does not
 * matter, those of the type information count as present.  0, or
 * -EOPNOTSUPP and a message.
 */
int hooks__find(struct profile_hook *hooks, size_t n,
		struct hook_place *places, bool functions,
		struct drops *drops, char *err, size_t len);

/* Which stages have a hook: fills `available` from the profile's hooks. */
void hooks__stages(struct profile *p);

#endif
