/* SPDX-License-Identifier: GPL-2.0-only */
/* The kernel's symbol table, /proc/kallsyms. */
#ifndef PATHPROF_SYMBOLS_H
#define PATHPROF_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

struct symbol {
	uint64_t start;
	const char *name;
};

/* Functions, in the order of their addresses. */
struct symbols {
	struct symbol *list;
	char *names;
	size_t n;
};

/*
 * Call found() for each line, "ADDRESS TYPE NAME [MODULE]", which it may change;
 * name is where NAME begins.  So one that looks for few names leaves most lines
 * at the first letter.  0, or a negative errno: it cannot be read.
 */
int symbols__each(void (*found)(void *arg, char *line, char *name), void *arg);
/* End the name at its module. */
void symbols__cut(char *name);
/* All functions; takes some 5 MB.  0 or a negative errno. */
int symbols__read(struct symbols *s);
void symbols__free(struct symbols *s);
/*
 * The function of a call's return address, which may be that of what follows its
 * last instruction; "" if there is none.
 */
const char *symbols__of(const struct symbols *s, uint64_t address);

#endif
