// SPDX-License-Identifier: GPL-2.0-only
/*
 * Adds one profile to another: paths, account, times.  Only profiles of the
 * same sampling and filter are added, and the sum must fit.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "profile/profile.h"

static void add(uint64_t *to, const uint64_t *from, size_t n)
{
	while (n--)
		to[n] += from[n];
}

static void raise(uint64_t *to, uint64_t from)
{
	if (from > *to)
		*to = from;
}

/*
 * The number of a drop reason in `to`: kernels number them differently.  One
 * that has another name there gets a number that is unused.
 */
static uint32_t merge_reason(struct profile *to, const struct profile *from,
			     uint32_t number)
{
	const char *name = profile__reason(from, number);
	struct profile_reason *reason;
	size_t i;

	if (!*name)
		return number;
	for (i = 0; i < to->nreasons; i++)
		if (!strcmp(to->reasons[i].name, name))
			return to->reasons[i].number;
	while (*profile__reason(to, number))
		number++;
	reason = profile__add_reason(to, number);
	if (reason)
		snprintf(reason->name, sizeof(reason->name), "%s", name);
	return number;
}

bool profile__same_filter(const struct profile *a, const struct profile *b)
{
	return a->port == b->port && !strcmp(a->addr, b->addr) &&
	       !strcmp(a->filter, b->filter) && a->udp == b->udp &&
	       a->icmp == b->icmp && a->fine == b->fine;
}

static bool timed(const struct profile *p)
{
	const uint64_t *n = &p->stage_hist[0][0];
	size_t i;

	for (i = 0; i < PATHPROF_STAGE_MAX * HIST_BUCKETS; i++)
		if (n[i])
			return true;
	return false;
}

/* Of a part they would be no times of the whole. */
static void merge_times(struct profile *to, const struct profile *from)
{
	if (timed(to) && timed(from))
		add(&to->stage_hist[0][0], &from->stage_hist[0][0],
		    PATHPROF_STAGE_MAX * HIST_BUCKETS);
	else
		memset(to->stage_hist, 0, sizeof(to->stage_hist));
}

void profile__add_state(struct path_state *to, const struct path_state *from)
{
	int i;

	for (i = 0; from->packets && i < STATE_MAX; i++) {
		if (!to->packets || from->least[i] < to->least[i])
			to->least[i] = from->least[i];
		if (from->most[i] > to->most[i])
			to->most[i] = from->most[i];
		to->sum[i] += from->sum[i];
	}
	to->packets += from->packets;
}

int profile__merge(struct profile *to, const struct profile *from)
{
	struct profile_path *path;
	struct path_key key;
	size_t i, j;

	if (to->sample != from->sample ||
	    !to->budget_ppm != !from->budget_ppm)
		return -EINVAL;
	if (!profile__same_filter(to, from))
		return -EXDEV;
	for (i = 0; i < PATHPROF_STAGE_MAX; i++)
		if (!to->stages[i].known)
			to->stages[i] = from->stages[i];
	for (i = 0; i < from->npaths; i++) {
		key = from->paths[i].key;
		key.reason = merge_reason(to, from, key.reason);
		key.location = profile__add_location(to,
					profile__location(from, &key));
		path = profile__path(to, &key);
		if (!path)
			return -ENOMEM;
		add((uint64_t *)&path->sum,
		    (const uint64_t *)&from->paths[i].sum,
		    sizeof(path->sum) / sizeof(uint64_t));
		add(path->probe_ns, from->paths[i].probe_ns, PATH_STAGES);
		profile__add_state(&path->state, &from->paths[i].state);
	}
	add(to->ends, from->ends, PATHPROF_END_MAX);
	add(to->counters, from->counters, PATHPROF_COUNTER_MAX);
	merge_times(to, from);
	to->followed += from->followed;
	to->load_ns += from->load_ns;
	to->load_packets += from->load_packets;
	to->load_bytes += from->load_bytes;
	/* One after the other: rates are means over all of them. */
	to->duration_ns += from->duration_ns;
	to->open_ns += from->open_ns;
	raise(&to->probe_ns, from->probe_ns);
	/* Of a part it is not enough. */
	to->probe_known &= from->probe_known;
	for (i = 0; i < to->nhooks; i++)
		for (j = 0; j < from->nhooks; j++)
			if (!strcmp(to->hooks[i].name, from->hooks[j].name) &&
			    !strcmp(to->hooks[i].type, from->hooks[j].type))
				to->hooks[i].missed += from->hooks[j].missed;
	return profile__fits(to) ? 0 : -EOVERFLOW;
}
