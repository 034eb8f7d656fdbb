// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads the kernel's symbol table.  It has some 200000 lines, whose addresses have
 * one length.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernel/symbols.h"

#define TYPE_AT	(2 * sizeof(long) + 1)
#define NAME_AT	(TYPE_AT + 2)

int symbols__each(void (*found)(void *arg, char *line, char *name), void *arg)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char *line = NULL;
	char page[4096];
	size_t size = 0;
	ssize_t len;

	if (!f)
		return -errno;
	/* The kernel gives a page at a time; stdio would ask for a quarter. */
	setvbuf(f, page, _IOFBF, sizeof(page));
	while ((len = getline(&line, &size, f)) > 0)
		if (len > (ssize_t)NAME_AT)
			found(arg, line, line + NAME_AT);
	free(line);
	fclose(f);
	return 0;
}

void symbols__cut(char *name)
{
	name[strcspn(name, "\t\n")] = 0;
}

/* Names are offsets until the table has its place in memory. */
struct reading {
	struct symbols *s;
	size_t room, used, names_room;
	int rc;
};

/* The list with room for `need` elements; NULL, and the old one remains. */
static void *grow(void *list, size_t *room, size_t need, size_t one)
{
	void *grown = list;

	if (need > *room)
		grown = reallocarray(list, 2 * need, one);
	if (need > *room && grown)
		*room = 2 * need;
	return grown;
}

static void add(void *arg, char *line, char *name)
{
	struct reading *r = arg;
	struct symbols *s = r->s;
	struct symbol *list;
	uint64_t start;
	char *names;
	size_t len;

	if (!strchr("TtWw", line[TYPE_AT]) || r->rc)
		return;
	/* 0 without CAP_SYSLOG. */
	start = strtoull(line, NULL, 16);
	if (!start)
		return;
	symbols__cut(name);
	/* The parts of a function that the compiler has split bear its name. */
	name[strcspn(name, ".")] = 0;
	len = strlen(name) + 1;
	list = grow(s->list, &r->room, s->n + 1, sizeof(*list));
	if (list)
		s->list = list;
	names = grow(s->names, &r->names_room, r->used + len, 1);
	if (names)
		s->names = names;
	if (!list || !names) {
		r->rc = -ENOMEM;
		return;
	}
	s->list[s->n].start = start;
	s->list[s->n++].name = (const char *)r->used;
	memcpy(s->names + r->used, name, len);
	r->used += len;
}

static int by_start(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int symbols__read(struct symbols *s)
{
	struct reading r = { .s = s };
	size_t i;
	int rc;

	memset(s, 0, sizeof(*s));
	rc = symbols__each(add, &r);
	if (rc || r.rc) {
		symbols__free(s);
		return rc ?: r.rc;
	}
	for (i = 0; i < s->n; i++)
		s->list[i].name = s->names + (size_t)s->list[i].name;
	if (s->n)
		qsort(s->list, s->n, sizeof(*s->list), by_start);
	return 0;
}

void symbols__free(struct symbols *s)
{
	free(s->list);
	free(s->names);
	memset(s, 0, sizeof(*s));
}

const char *symbols__of(const struct symbols *s, uint64_t address)
{
	size_t low = 0, high = s->n, middle;

	while (low < high) {
		middle = (low + high) / 2;
		if (s->list[middle].start < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? s->list[low - 1].name : "";
}
