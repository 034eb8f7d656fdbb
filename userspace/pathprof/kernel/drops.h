/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names for what the kernel reports of a dropped packet: the reason, and the
 * function.
 */
#ifndef PATHPROF_DROPS_H
#define PATHPROF_DROPS_H

#include <bpf/btf.h>
#include "profile/profile.h"

/*
 * Places in the kernel, as of struct path_key, and their functions as entries of a
 * list.
 */
struct drops {
	struct profile names;	/* its reasons and locations only */
	struct {
		uint64_t place, entry;
	} places[PROFILE_LOCATIONS];
	size_t nplaces;
	int stacks;		/* the map of stacks; -1: none are kept */
};

/* The names of an enum if it is one of drop reasons; prefix "" or "MODULE." */
void drops__read_enum(struct drops *d, const struct btf *btf,
		      const struct btf_type *type, const char *prefix);
/* Reasons of modules that have their own. */
void drops__read_modules(struct drops *d, struct btf *base);
/* Look up the functions of new places. */
void drops__resolve(struct drops *d, const struct path_entry *entries);
/* The entry of a place that is resolved; 0 if it is not known. */
uint64_t drops__location(const struct drops *d, uint64_t place);
/* Give the names to a profile, before its paths are read. */
void drops__fill(const struct drops *d, struct profile *p);
/* Name the reason of a path that no type information names. */
void drops__name(struct profile *p, const struct path_key *key);

#endif
