/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions of kernel modules as places for hooks.
 */
#ifndef PATHPROF_MODULES_H
#define PATHPROF_MODULES_H

struct btf;

/* Call found() for each function of the loaded modules that have hooks. */
void modules__functions(struct btf *vmlinux,
			void (*found)(void *arg, const char *function, int id,
				      const char *module), void *arg);
/*
 * Search all loaded modules for a function, whose module has hooks from then on.
 * Its type information, to be freed, and the function's id there; or NULL.
 */
struct btf *modules__search(struct btf *vmlinux, const char *function, int *id);
/* The module of a hook's function; NULL: none of those that have hooks. */
const char *modules__of(const char *function);
/*
 * A file descriptor of a module's type information, to be closed; or a negative
 * errno, -EPERM without CAP_SYS_ADMIN.
 */
int modules__btf(const char *module);

#endif
