// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names of drop reasons, from the type information of the kernel and of its
 * modules, and of the functions that drop packets, from its symbol table.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <bpf/bpf.h>
#include "kernel/drops.h"
#include "kernel/symbols.h"

#define CALLERS	8	/* of a drop, in its name */

#define SUBSYSTEM	"SKB_DROP_REASON_SUBSYS_"

/* What follows the last of these is the reason's own name. */
static const char *bare_name(const char *name)
{
	static const char *const prefixes[] = {
		SUBSYSTEM, "SKB_DROP_REASON_", "DROP_REASON_", "DROP_",
	};
	const char *at;
	size_t i;

	for (i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
		at = strstr(name, prefixes[i]);
		if (at)
			return at + strlen(prefixes[i]);
	}
	return name;
}

static void name_reason(struct profile *p, uint32_t number, const char *prefix,
			const char *name)
{
	struct profile_reason *reason = profile__add_reason(p, number);
	char *c;

	if (!reason)
		return;
	snprintf(reason->name, sizeof(reason->name), "%s%.40s", prefix,
		 bare_name(name));
	for (c = reason->name; *c; c++)
		*c = tolower((unsigned char)*c);
}

void drops__read_enum(struct drops *d, const struct btf *btf,
		      const struct btf_type *type, const char *prefix)
{
	const char *name = btf__name_by_offset(btf, type->name_off);
	const struct btf_enum *e = btf_enum(type);
	bool subsystems = !strcmp(name, "skb_drop_reason_subsys");
	size_t len = strlen(name);
	int i;

	if (!subsystems &&
	    (len < 11 || strcmp(name + len - 11, "drop_reason")))
		return;
	for (i = 0; i < btf_vlen(type); i++) {
		name = btf__name_by_offset(btf, e[i].name_off);
		/* The first of a subsystem is a name for the subsystem. */
		if (!name || e[i].val < 0 ||
		    (subsystems ? !e[i].val : !(e[i].val & 0xffff)) ||
		    (*prefix && !(e[i].val >> 16)))
			continue;
		name_reason(&d->names, subsystems ? e[i].val << 16 : e[i].val,
			    prefix, name);
	}
}

void drops__read_modules(struct drops *d, struct btf *base)
{
	static const char *const modules[] = { "openvswitch", "mac80211" };
	const struct btf_type *type;
	char path[64], prefix[16];
	struct btf *btf;
	struct stat st;
	size_t i;
	int id;

	for (i = 0; i < sizeof(modules) / sizeof(*modules); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/btf/%s", modules[i]);
		snprintf(prefix, sizeof(prefix), "%s.", modules[i]);
		if (stat(path, &st))
			continue; /* not loaded */
		btf = btf__parse_split(path, base);
		if (!btf)
			continue;
		for (id = btf__type_cnt(base); id < (int)btf__type_cnt(btf);
		     id++) {
			type = btf__type_by_id(btf, id);
			if (btf_is_enum(type))
				drops__read_enum(d, btf, type, prefix);
		}
		btf__free(btf);
	}
}

/* Remember a place that is new; how many are not looked up yet. */
static size_t collect(struct drops *d, const struct path_entry *entries)
{
	size_t before = d->nplaces, i, at;
	uint64_t place;

	for (i = 0; i < PATH_PATHS; i++) {
		if (__atomic_load_n(&entries[i].state, __ATOMIC_ACQUIRE) !=
		    PATH_USED)
			continue;
		place = entries[i].key.location;
		for (at = 0; at < d->nplaces; at++)
			if (d->places[at].place == place)
				break;
		if (!place || at < d->nplaces || at == PROFILE_LOCATIONS)
			continue;
		memset(&d->places[at], 0, sizeof(d->places[at]));
		d->places[at].place = place;
		d->nplaces++;
	}
	return before;
}

/*
 * The functions that led to a drop, behind its own: what comes before that in the
 * stack is the freeing and pathprof's program.
 */
static void add_callers(const struct symbols *symbols, int stacks,
			uint64_t place, char *name, size_t len)
{
	uint64_t frames[DROP_FRAMES] = {};
	uint32_t id = place >> DROP_STACK_SHIFT;
	const char *function, *last = name;
	size_t i = 0, at = strlen(name), callers = 0;

	if (stacks < 0 || !at || id == 0xffff || !id)
		return;
	id--;
	if (bpf_map_lookup_elem(stacks, &id, frames))
		return;
	while (i < DROP_FRAMES &&
	       strcmp(symbols__of(symbols, frames[i]), name))
		i++;
	for (i++; i < DROP_FRAMES && frames[i] && callers < CALLERS; i++) {
		function = symbols__of(symbols, frames[i]);
		/* A function that pathprof hooks is there twice, and between. */
		if (!strncmp(function, "bpf_trampoline_", 15) ||
		    !strcmp(function, last))
			continue;
		last = function;
		if (at + strlen(function) + 4 > len)
			return;
		at += snprintf(name + at, len - at, " < %s", function);
		callers++;
	}
}

void drops__resolve(struct drops *d, const struct path_entry *entries)
{
	size_t from = collect(d, entries), i;
	char name[sizeof(d->names.locations[0])];
	struct symbols symbols;

	if (from == d->nplaces || symbols__read(&symbols))
		return;
	for (i = from; i < d->nplaces; i++) {
		snprintf(name, sizeof(name), "%.63s",
			 symbols__of(&symbols, d->places[i].place |
				     ~DROP_ADDRESS));
		add_callers(&symbols, d->stacks, d->places[i].place, name,
			    sizeof(name));
		d->places[i].entry = profile__add_location(&d->names, name);
	}
	symbols__free(&symbols);
}

uint64_t drops__location(const struct drops *d, uint64_t place)
{
	size_t i;

	for (i = 0; place && i < d->nplaces; i++)
		if (d->places[i].place == place)
			return d->places[i].entry;
	return 0;
}

void drops__fill(const struct drops *d, struct profile *p)
{
	memcpy(p->reasons, d->names.reasons, sizeof(p->reasons));
	p->nreasons = d->names.nreasons;
	memcpy(p->locations, d->names.locations, sizeof(p->locations));
	p->nlocations = d->names.nlocations;
}

void drops__name(struct profile *p, const struct path_key *key)
{
	uint32_t number = key->reason;
	const char *subsystem;
	struct profile_reason *reason;

	/* A listener frees what it refuses as if it had used it. */
	if (key->end == END_DROPPED && !number) {
		reason = profile__add_reason(p, number);
		if (reason)
			strcpy(reason->name, "refused_by_listener");
		return;
	}
	if (!(number >> 16) || *profile__reason(p, number))
		return;
	subsystem = profile__reason(p, number & 0xffff0000);
	reason = *subsystem ? profile__add_reason(p, number) : NULL;
	if (reason)
		snprintf(reason->name, sizeof(reason->name), "%.40s.%u",
			 subsystem, number & 0xffff);
}
