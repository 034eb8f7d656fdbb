// SPDX-License-Identifier: GPL-2.0-only
/*
 * FNV-1a, 64 bits, of "DIRECTION|FAMILY|STAGES|FLAGS|FACTS|END|", and of dropped
 * packets "REASON|FUNCTION".  Lists are joined by commas: stages in the path's
 * order, flags and facts by number.
 */
#include <stdio.h>
#include "profile/path-id.h"

static void add(uint64_t *hash, const char *text)
{
	for (; *text; text++)
		*hash = (*hash ^ (unsigned char)*text) * 0x100000001b3ULL;
}

static void add_words(uint64_t *hash, uint32_t bits,
		      const char *(*name)(unsigned int))
{
	const char *comma = "";
	unsigned int bit;

	for (bit = 0; bit < 32; bit++) {
		if (!(bits >> bit & 1) || !name(bit))
			continue;
		add(hash, comma);
		add(hash, name(bit));
		comma = ",";
	}
	add(hash, "|");
}

const char *path__id(const struct profile *p, const struct path_key *key,
		     char out[PATH_ID])
{
	uint64_t hash = 0xcbf29ce484222325ULL;
	char number[16];
	unsigned int i;

	add(&hash, dir_name(key->dir) ?: "");
	snprintf(number, sizeof(number), "|%u|", key->family);
	add(&hash, number);
	for (i = 0; i < key->n && i < PATH_STAGES; i++) {
		add(&hash, i ? "," : "");
		add(&hash, profile__stage(p, key, i)->name);
	}
	add(&hash, "|");
	add_words(&hash, key->flags, flag_name);
	add_words(&hash, key->facts, fact_name);
	add(&hash, end_word(key->end) ?: "");
	add(&hash, "|");
	if (key->end == END_DROPPED) {
		snprintf(number, sizeof(number), "%u", key->reason);
		add(&hash, *profile__reason(p, key->reason) ?
		    profile__reason(p, key->reason) : number);
		add(&hash, "|");
		add(&hash, profile__location(p, key));
	}
	snprintf(out, PATH_ID, "%016llx", (unsigned long long)hash);
	return out;
}
