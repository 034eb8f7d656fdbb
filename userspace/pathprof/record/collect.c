// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads maps into a profile: the sums of paths over all CPUs, the counts of
 * the account, and the packets that were still on their way.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "record/collect.h"

static void add_value(struct path_value *to, const struct path_value *from)
{
	uint64_t *a = (uint64_t *)to;
	const uint64_t *b = (const uint64_t *)from;
	size_t i;

	for (i = 0; i < sizeof(*to) / sizeof(*a); i++)
		a[i] += b[i];
}

static void add_cpu(struct group_value *to, const struct path_key *key,
		    const struct path_value *v)
{
	to->packets += v->packets;
	to->segments += v->segments;
	to->bytes += v->bytes;
	to->work_ns += v->work_ns;
	to->wait_ns += v->wait_ns;
	if (key->end == END_DROPPED)
		to->dropped += v->packets;
}

/* The states that the packets of one entry of the table met. */
static int read_states(const struct sums *s, uint32_t at, int cpus,
		       struct path_state *to)
{
	size_t size = cpus * sizeof(struct path_state);
	struct path_state *states;
	int cpu;

	if (!s->path_states)
		return 0;
	states = malloc(size);
	if (!states)
		return -ENOMEM;
	if (!bpf_map__lookup_elem(s->path_states, &at, sizeof(at), states,
				  size, 0))
		for (cpu = 0; cpu < cpus; cpu++)
			profile__add_state(to, &states[cpu]);
	free(states);
	return 0;
}

int sums__groups(const struct sums *s, struct profile *p)
{
	struct group_key key, *previous = NULL;
	struct profile_group *g;
	struct group_value v;

	if (!s->groups)
		return 0;
	p->groups = calloc(GROUPS_MAX, sizeof(*p->groups));
	if (!p->groups)
		return -ENOMEM;
	while (p->ngroups < GROUPS_MAX &&
	       !bpf_map__get_next_key(s->groups, previous, &key, sizeof(key))) {
		g = &p->groups[p->ngroups];
		if (!bpf_map__lookup_elem(s->groups, &key, sizeof(key), &v,
					  sizeof(v), 0)) {
			g->key = key;
			g->sum = v;
			p->ngroups++;
		}
		previous = &key;
	}
	return 0;
}

int sums__paths(const struct sums *s, struct profile *p)
{
	int cpus = libbpf_num_possible_cpus(), cpu;
	const struct path_entry *e = s->path_entries;
	struct profile_path *path;
	struct path_value *values;
	struct path_key key;
	size_t size = sizeof(*values) * cpus;
	uint32_t i;

	values = malloc(size);
	p->cpus = calloc(cpus, sizeof(*p->cpus));
	if (!values || !p->cpus) {
		free(values);
		return -ENOMEM;
	}
	p->ncpus = cpus;
	for (i = 0; i < PATH_PATHS; i++, e++) {
		if (__atomic_load_n(&e->state, __ATOMIC_ACQUIRE) != PATH_USED)
			continue;
		if (bpf_map__lookup_elem(s->path_values, &i, sizeof(i), values,
					 size, 0))
			continue;
		key = e->key;
		key.location = drops__location(s->drops, key.location);
		drops__name(p, &key);
		path = profile__path(p, &key);
		if (!path || read_states(s, i, cpus, &path->state)) {
			free(values);
			return -ENOMEM;
		}
		for (cpu = 0; cpu < cpus; cpu++) {
			add_value(&path->sum, &values[cpu]);
			add_cpu(&p->cpus[cpu], &e->key, &values[cpu]);
			p->ends[e->key.end & (PATHPROF_END_MAX - 1)] +=
				values[cpu].packets;
		}
	}
	free(values);
	return 0;
}

/* One packet that did not arrive in time: its path as far as it came. */
static int add_tracked(struct profile *p, const struct tracked_pkt *t)
{
	struct path_key key = t->path;
	struct profile_path *path;
	unsigned int i;

	/* Behind its last stage are those of a packet before it. */
	if (key.n < PATH_STAGES)
		memset(key.stages + key.n, 0, PATH_STAGES - key.n);
	key.end = END_FOLLOWED;
	path = profile__path(p, &key);
	if (!path)
		return -ENOMEM;
	path->sum.packets++;
	path->sum.segments += t->segments;
	path->sum.bytes += t->bytes;
	/* The last stage has no end yet, but may have come before. */
	for (i = 0; i < key.n && i < PATH_STAGES; i++) {
		path->sum.stage_ns[i] += t->stage_ns[i];
		if (p->stages[key.stages[i] % PATHPROF_STAGE_MAX].kind == KIND_WAIT)
			path->sum.wait_ns += t->stage_ns[i];
		else
			path->sum.work_ns += t->stage_ns[i];
	}
	path->sum.hist[0]++;
	return 0;
}

/* In use, and not by a fragment after the first, which has no path. */
static bool has_path(const struct sums *s, uint32_t i)
{
	return s->tracked_keys[i] && s->tracked_pkts[i].path.dir != DIR_NONE;
}

void sums__followed(const struct sums *s, struct profile *p)
{
	uint32_t i;

	p->followed = 0;
	for (i = 0; i < TRACKED_MAX; i++)
		p->followed += has_path(s, i);
}

int sums__tracked(const struct sums *s, struct profile *p)
{
	uint32_t i;

	for (i = 0; i < TRACKED_MAX; i++) {
		if (!has_path(s, i))
			continue;
		if (s->tracked_pkts[i].undecided) {
			/* It is not decided, and will not be. */
			p->counters[CN_SAMPLED]--;
			p->counters[CN_FILTERED]++;
			continue;
		}
		p->followed++;
		if (add_tracked(p, &s->tracked_pkts[i]))
			return -ENOMEM;
	}
	for (i = 0; i < SOCKS; i++)
		p->followed += s->socks[i].pending;
	return 0;
}

/* Add a per-CPU map's only value, n numbers, to `to`. */
static void add_cpus(const struct bpf_map *map, uint64_t *to, size_t n)
{
	int cpus = libbpf_num_possible_cpus(), cpu;
	uint64_t *values = calloc(cpus, n * sizeof(*values)), *v = values;
	uint32_t zero = 0;
	size_t i;

	if (!values)
		return;
	if (!bpf_map__lookup_elem(map, &zero, sizeof(zero), values,
				  cpus * n * sizeof(*values), 0)) {
		for (cpu = 0; cpu < cpus; cpu++, v += n)
			for (i = 0; i < n; i++)
				to[i] += v[i];
	}
	free(values);
}

void sums__counts(const struct sums *s, uint64_t *counters)
{
	add_cpus(s->counts, counters, PATHPROF_COUNTER_MAX);
}

void sums__stages(const struct sums *s, struct profile *p)
{
	add_cpus(s->stage_times, &p->stage_hist[0][0],
		 PATHPROF_STAGE_MAX * HIST_BUCKETS);
}
