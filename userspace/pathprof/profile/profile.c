// SPDX-License-Identifier: GPL-2.0-only
/*
 * Profiles in memory: the vocabulary, the table of paths, sums over it and
 * the difference of two readings.  Knows nothing of the kernel or of files.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "profile/profile.h"

static const struct {
	uint8_t dir, kind, category;
	uint16_t order;
	const char *name, *hooks, *meaning;
} stage_table[PATHPROF_STAGE_MAX] = {
#define STAGE(id, sym, name, dir, order, kind, cat, hooks, meaning) \
	[id] = { DIR_##dir, KIND_##kind, CAT_##cat, order, name, hooks, meaning },
	PATHPROF_STAGES(STAGE)
#undef STAGE
};

static const char *const category_names[PATHPROF_CATEGORY_MAX] = {
#define CATEGORY(sym, name) [CAT_##sym] = name,
	PATHPROF_CATEGORIES(CATEGORY)
#undef CATEGORY
};

static const char *const end_names[PATHPROF_END_MAX] = {
#define END(id, sym, name, meaning) [id] = name,
	PATHPROF_ENDS(END)
#undef END
};

static const char *const flag_names[32] = {
#define FLAG(bit, sym, name, meaning) [bit] = name,
	PATHPROF_FLAGS(FLAG)
#undef FLAG
};

static const struct {
	const char *name, *branch, *meaning;
} fact_table[32] = {
#define FACT(bit, sym, name, branch, meaning) [bit] = { name, branch, meaning },
	PATHPROF_FACTS(FACT)
#undef FACT
};

static const struct {
	const char *name, *meaning;
	bool loss;
} counter_table[PATHPROF_COUNTER_MAX] = {
#define COUNTER(id, sym, name, lost, meaning) [id] = { name, meaning, lost },
	PATHPROF_COUNTERS(COUNTER)
#undef COUNTER
};

const char *end_name(unsigned int end)
{
	return end < PATHPROF_END_MAX ? end_names[end] : NULL;
}

const char *end_word(unsigned int end)
{
	return end == END_FOLLOWED ? "in flight" : end_name(end);
}

const char *hook_state_name(unsigned int state)
{
	static const char *const names[] = {
		[HOOK_ATTACHED] = "attached", [HOOK_PRESENT] = "present",
		[HOOK_MISSING] = "missing", [HOOK_FAILED] = "failed",
	};

	return state < sizeof(names) / sizeof(*names) ? names[state] : NULL;
}

const char *flag_name(unsigned int bit)
{
	return bit < 32 ? flag_names[bit] : NULL;
}

const char *fact_name(unsigned int bit)
{
	return bit < 32 ? fact_table[bit].name : NULL;
}

const char *fact_branch(unsigned int bit)
{
	return fact_table[bit].branch;
}

static const char *const state_table[STATE_MAX][2] = {
#define STATE(sym, name, meaning) [STATE_##sym] = { name, meaning },
	PATHPROF_STATES(STATE)
#undef STATE
};

const char *state_name(unsigned int state)
{
	return state < STATE_MAX ? state_table[state][0] : NULL;
}

const char *state_meaning(unsigned int state)
{
	return state_table[state][1];
}

const char *fact_meaning(unsigned int bit)
{
	return fact_table[bit].meaning;
}

const char *counter_name(unsigned int id)
{
	return id < PATHPROF_COUNTER_MAX ? counter_table[id].name : NULL;
}

const char *counter_meaning(unsigned int id)
{
	return counter_table[id].meaning;
}

bool counter_is_loss(unsigned int id)
{
	return counter_table[id].loss;
}

const char *dir_name(unsigned int dir)
{
	static const char *const names[] = { "any", "rx", "tx" };

	return dir < 3 ? names[dir] : NULL;
}

const char *kind_name(unsigned int kind)
{
	static const char *const names[] = { "work", "wait", "end" };

	return kind < 3 ? names[kind] : NULL;
}

void profile__init(struct profile *p)
{
	struct profile_stage *s;
	size_t i;

	memset(p, 0, sizeof(*p));
	p->sample = 1;
	for (i = 0; i < PATHPROF_STAGE_MAX; i++) {
		if (!stage_table[i].name)
			continue;
		s = &p->stages[i];
		s->known = true;
		s->dir = stage_table[i].dir;
		s->kind = stage_table[i].kind;
		s->order = stage_table[i].order;
		snprintf(s->name, sizeof(s->name), "%s", stage_table[i].name);
		snprintf(s->meaning, sizeof(s->meaning), "%s",
			 stage_table[i].meaning);
		snprintf(s->hooks, sizeof(s->hooks), "%s",
			 stage_table[i].hooks);
	}
}

void profile__free(struct profile *p)
{
	free(p->paths);
	free(p->command);
	free(p->groups);
	free(p->cpus);
	p->groups = NULL;
	p->cpus = NULL;
	p->ngroups = p->ncpus = 0;
	p->paths = NULL;
	p->command = NULL;
	p->npaths = 0;
}

const char *profile__reason(const struct profile *p, uint32_t number)
{
	size_t i;

	for (i = 0; i < p->nreasons; i++)
		if (p->reasons[i].number == number)
			return p->reasons[i].name;
	return "";
}

struct profile_reason *profile__add_reason(struct profile *p, uint32_t number)
{
	size_t i;

	for (i = 0; i < p->nreasons; i++)
		if (p->reasons[i].number == number)
			return &p->reasons[i];
	if (i == PROFILE_REASONS)
		return NULL;
	p->reasons[i].number = number;
	p->nreasons++;
	return &p->reasons[i];
}

const char *profile__location(const struct profile *p,
			      const struct path_key *key)
{
	return key->location < p->nlocations ? p->locations[key->location] : "";
}

uint64_t profile__add_location(struct profile *p, const char *name)
{
	size_t i;

	if (!*name)
		return 0;
	if (!p->nlocations)
		p->nlocations = 1;
	for (i = 1; i < p->nlocations; i++)
		if (!strcmp(p->locations[i], name))
			return i;
	if (i == PROFILE_LOCATIONS)
		return 0;
	snprintf(p->locations[i], sizeof(p->locations[i]), "%s", name);
	p->nlocations++;
	return i;
}

static struct profile_path *find_path(const struct profile *p,
				      const struct path_key *key)
{
	size_t i;

	for (i = 0; i < p->npaths; i++)
		if (!memcmp(&p->paths[i].key, key, sizeof(*key)))
			return &p->paths[i];
	return NULL;
}

struct profile_path *profile__path(struct profile *p,
				   const struct path_key *key)
{
	struct profile_path *path = find_path(p, key), *grown;

	if (path)
		return path;
	/* Grow at powers of two. */
	if (!(p->npaths & (p->npaths - 1))) {
		grown = reallocarray(p->paths, p->npaths ? p->npaths * 2 : 1,
				     sizeof(*path));
		if (!grown)
			return NULL;
		p->paths = grown;
	}
	path = &p->paths[p->npaths++];
	memset(path, 0, sizeof(*path));
	path->key = *key;
	return path;
}

const struct profile_stage *profile__stage(const struct profile *p,
					   const struct path_key *key,
					   unsigned int at)
{
	unsigned int id = at < PATH_STAGES ? key->stages[at] : 0;

	return &p->stages[id < PATHPROF_STAGE_MAX ? id : 0];
}

const char *category_name(unsigned int category)
{
	return category_names[category];
}

void profile__categories(const struct profile *p, uint64_t *ns)
{
	const struct profile_path *path;
	uint8_t id;
	size_t i;
	int at;

	memset(ns, 0, PATHPROF_CATEGORY_MAX * sizeof(*ns));
	for (i = 0; i < p->npaths; i++) {
		path = &p->paths[i];
		for (at = 0; at < path->key.n && at < PATH_STAGES; at++) {
			id = path->key.stages[at] % PATHPROF_STAGE_MAX;
			/* Another build's stage is none of ours. */
			ns[stage_table[id].name ? stage_table[id].category :
			   CAT_OTHER] += path->sum.stage_ns[at];
		}
	}
}

void profile__totals(const struct profile *p, struct profile_totals *t)
{
	const struct profile_path *path;
	size_t i;

	memset(t, 0, sizeof(*t));
	for (i = 0; i < p->npaths; i++) {
		path = &p->paths[i];
		t->packets += path->sum.packets;
		t->bytes += path->sum.bytes;
		t->work_ns += path->sum.work_ns;
		if (!path_is_rx(&path->key) || !(path->key.flags & PF_DATA) ||
		    !(path->key.flags & PF_EST))
			continue;
		t->data += path->sum.packets;
		if (path->key.flags & PF_FAST)
			t->fast_data += path->sum.packets;
	}
	for (i = 0; i < PATHPROF_END_MAX; i++)
		if (i != END_DROPPED && i != END_EVICTED && i != END_STALE)
			t->done += p->ends[i];
	t->dropped = p->ends[END_DROPPED];
	t->lost = p->ends[END_EVICTED] + p->ends[END_STALE];
	for (i = 0; i < PATHPROF_COUNTER_MAX; i++)
		if (counter_is_loss(i))
			t->lost += p->counters[i];
	for (i = 0; i < p->nhooks; i++)
		t->missed += p->hooks[i].missed;
	t->unaccounted = p->counters[CN_SAMPLED] - t->done - t->dropped -
			 t->lost - p->followed;
}

/* Of one path; the parts of stages that wait are none of its work. */
static void subtract_path(const struct profile *p, struct profile_path *path)
{
	struct path_value *v = &path->sum;
	uint64_t own, *sum;
	unsigned int i;

	for (i = 0; i < path->key.n && i < PATH_STAGES; i++) {
		sum = p->stages[path->key.stages[i] %
				PATHPROF_STAGE_MAX].kind == KIND_WAIT ?
		      (uint64_t *)&v->wait_ns : (uint64_t *)&v->work_ns;
		own = path->probe_ns[i];
		if (own > v->stage_ns[i])
			own = v->stage_ns[i];
		if (own > *sum)
			own = *sum;
		v->stage_ns[i] -= own;
		*sum -= own;
		path->probe_ns[i] = own;
		if (sum == (uint64_t *)&v->work_ns)
			v->probe_ns += own;
	}
}

void profile__subtract(struct profile *p)
{
	size_t i;

	if (!p->probe_known || p->subtracted)
		return;
	for (i = 0; i < p->npaths; i++)
		subtract_path(p, &p->paths[i]);
	p->subtracted = true;
}

static void subtract(uint64_t *to, const uint64_t *from, size_t n)
{
	while (n--)
		to[n] -= from[n];
}

static const struct group_value *find_group(const struct profile *p,
					    const struct group_key *key)
{
	size_t i;

	for (i = 0; i < p->ngroups; i++)
		if (!memcmp(&p->groups[i].key, key, sizeof(*key)))
			return &p->groups[i].sum;
	return NULL;
}

/* Copies of the groups, less those of old. */
static int diff_groups(const struct profile *new, const struct profile *old,
		       struct profile *out)
{
	const size_t words = sizeof(struct group_value) / sizeof(uint64_t);
	const struct group_value *before;
	size_t i;

	out->groups = NULL;
	out->cpus = NULL;
	if (new->ngroups) {
		out->groups = calloc(new->ngroups, sizeof(*out->groups));
		if (!out->groups)
			return -ENOMEM;
		memcpy(out->groups, new->groups,
		       new->ngroups * sizeof(*out->groups));
	}
	if (new->ncpus) {
		out->cpus = calloc(new->ncpus, sizeof(*out->cpus));
		if (!out->cpus)
			return -ENOMEM;
		memcpy(out->cpus, new->cpus, new->ncpus * sizeof(*out->cpus));
	}
	for (i = 0; i < new->ngroups; i++) {
		before = find_group(old, &new->groups[i].key);
		if (before)
			subtract((uint64_t *)&out->groups[i].sum,
				 (const uint64_t *)before, words);
	}
	for (i = 0; i < old->ncpus && i < new->ncpus; i++)
		subtract((uint64_t *)&out->cpus[i],
			 (const uint64_t *)&old->cpus[i], words);
	return 0;
}

int profile__diff(const struct profile *new, const struct profile *old,
		  struct profile *out)
{
	const struct profile_path *before;
	struct profile_path *path;
	size_t i, at;

	*out = *new;
	out->command = NULL;
	out->paths = NULL;
	out->npaths = 0;
	if (diff_groups(new, old, out))
		return -ENOMEM;
	for (i = 0; i < new->npaths; i++) {
		before = find_path(old, &new->paths[i].key);
		if (before && before->sum.packets ==
			      new->paths[i].sum.packets)
			continue;
		path = profile__path(out, &new->paths[i].key);
		if (!path)
			return -ENOMEM;
		*path = new->paths[i];
		if (!before)
			continue;
		subtract((uint64_t *)&path->sum, (const uint64_t *)&before->sum,
			 sizeof(path->sum) / sizeof(uint64_t));
		subtract(path->probe_ns, before->probe_ns, PATH_STAGES);
		/* The range stays that since the start. */
		path->state.packets -= before->state.packets;
		for (at = 0; at < STATE_MAX; at++)
			path->state.sum[at] -= before->state.sum[at];
	}
	subtract(out->ends, old->ends, PATHPROF_END_MAX);
	subtract(out->counters, old->counters, PATHPROF_COUNTER_MAX);
	subtract(&out->stage_hist[0][0], &old->stage_hist[0][0],
		 PATHPROF_STAGE_MAX * HIST_BUCKETS);
	out->duration_ns = new->duration_ns - old->duration_ns;
	out->open_ns = new->open_ns - old->open_ns;
	return 0;
}

/* Both are at most INT64_MAX before. */
static bool count(uint64_t *sum, uint64_t n)
{
	*sum += n;
	return n <= INT64_MAX && *sum <= INT64_MAX;
}

static bool count_list(uint64_t *sum, const void *list, size_t n)
{
	const uint64_t *from = list;

	while (n--)
		if (!count(sum, *from++))
			return false;
	return true;
}

static bool path_fits(const struct profile_path *path, uint64_t *sums)
{
	const struct path_value *v = &path->sum;

	return count(&sums[0], v->packets) && count(&sums[1], v->segments) &&
	       count(&sums[2], v->bytes) && count(&sums[3], v->work_ns) &&
	       count(&sums[4], v->wait_ns) &&
	       count_list(&sums[5], v->stage_ns, PATH_STAGES) &&
	       count_list(&sums[6], v->hist, HIST_BUCKETS) &&
	       count_list(&sums[7], path->probe_ns, PATH_STAGES);
}

bool profile__fits(const struct profile *p)
{
	uint64_t sums[8] = {}, account = 0, skipped = 0, load = 0, times = 0;
	size_t i;

	for (i = 0; i < p->npaths; i++)
		if (!path_fits(&p->paths[i], sums))
			return false;
	for (i = 0; i < p->nhooks; i++)
		if (!count(&skipped, p->hooks[i].missed))
			return false;
	return p->npaths <= PROFILE_PATHS && count(&account, p->followed) &&
	       count_list(&account, p->ends, PATHPROF_END_MAX) &&
	       count_list(&account, p->counters + CN_SAMPLED + 1,
			  PATHPROF_COUNTER_MAX - CN_SAMPLED - 1) &&
	       p->counters[CN_SAMPLED] <= INT64_MAX &&
	       p->duration_ns <= INT64_MAX && p->open_ns <= INT64_MAX &&
	       count_list(&times, p->stage_hist,
			  PATHPROF_STAGE_MAX * HIST_BUCKETS) &&
	       count(&load, p->load_ns) && p->load_packets <= INT64_MAX &&
	       p->load_bytes <= INT64_MAX;
}
