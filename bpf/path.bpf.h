/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of paths: what a finished packet is added to.  Open addressing,
 * filled and never emptied; the hash of the stages is kept up while a packet
 * travels, so its path is found with a few compares.  Two CPUs that meet a
 * path at once may each make an entry of it: userspace adds them up.
 */
#ifndef PATHPROF_PATH_BPF_H
#define PATHPROF_PATH_BPF_H

#include "compat.bpf.h"
#include "config.bpf.h"
#include "detail.bpf.h"
#include "event.bpf.h"
#include "pcap.bpf.h"

#define PATH_PROBES	16

/* --drop-stacks (end.bpf.h); else the verifier removes the code. */
const volatile bool drop_stacks_on = false;

struct path_entry path_entries[PATH_PATHS] __attribute__((aligned(64)));

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PATH_PATHS);
	__type(key, __u32);
	__type(value, struct path_value);
} path_values SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stage_times);
} stage_times SEC(".maps");

struct counts {
	__u64 counters[PATHPROF_COUNTER_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} counts SEC(".maps");

/*
 * Stages in which a packet waits, by id.  A byte for each, as a load costs less
 * than a shift by a variable.
 */
#define STAGE_BIT_WORK	0
#define STAGE_BIT_END	0
#define STAGE_BIT_WAIT	1
#define STAGE(id, sym, name, dir, order, kind, cat, hooks, meaning) \
	[id] = STAGE_BIT_##kind,
static const __u8 wait_stages[256] = { PATHPROF_STAGES(STAGE) };
#undef STAGE

static __always_inline __u64 stage_waits(__u8 stage)
{
	return wait_stages[stage];
}

/* Atomic, as a softirq may interrupt the same sum in process context. */
static __always_inline void count(enum pathprof_counter id)
{
	struct counts *c = bpf_map_lookup_elem(&counts, &(__u32){ 0 });

	if (c)
		__sync_fetch_and_add(&c->counters[id], 1);
}

/*
 * A packet that was sampled turns out to be one that this counter counts; NULL
 * if it is not followed yet.
 */
static __always_inline void renounce(struct tracked_pkt *t,
				     enum pathprof_counter id)
{
	struct counts *c = bpf_map_lookup_elem(&counts, &(__u32){ 0 });

	if (t && events_on)
		event_put(t, EV_DISOWN, t->last_ns);
	if (!c)
		return;
	/* Below zero here if it was sampled on another CPU: the sum is right. */
	__sync_fetch_and_add(&c->counters[CN_SAMPLED], -1);
	__sync_fetch_and_add(&c->counters[id], 1);
}

/* It is not one of those asked for. */
static __always_inline void disown(struct tracked_pkt *t)
{
	renounce(t, CN_FILTERED);
}

/*
 * log2 without branches (each would double what the verifier walks): smear
 * the highest bit downwards, then a De Bruijn multiplication makes an index.
 */
static const __u8 log2_table[64] = {	/* at most HIST_BUCKETS - 1 */
	0, 39, 1, 39, 39, 27, 2, 39, 39, 39, 39, 37, 28, 16, 3, 39,
	39, 39, 35, 39, 39, 39, 21, 39, 38, 32, 29, 23, 17, 11, 4, 39,
	39, 39, 26, 39, 39, 36, 15, 39, 34, 39, 20, 39, 31, 22, 10, 39,
	25, 39, 14, 33, 19, 30, 9, 24, 13, 18, 8, 12, 7, 6, 5, 39,
};

static __always_inline __u32 log2_u64(__u64 v)
{
	v |= v >> 1;
	v |= v >> 2;
	v |= v >> 4;
	v |= v >> 8;
	v |= v >> 16;
	v |= v >> 32;
	return log2_table[v * 0x03f79d71b4cb0a89ULL >> 58];
}

/* How long each stage of a packet took, into the histograms of stages. */
static __always_inline void stages_took(const struct tracked_pkt *t)
{
	struct stage_times *times;
	__u32 stage, bucket, i;

	times = bpf_map_lookup_elem(&stage_times, &(__u32){ 0 });
	for (i = 0; times && i < PATH_STAGES; i++) {
		if (i >= t->path.n)
			break;
		stage = t->path.stages[i];
		bucket = log2_u64(t->stage_ns[i]);
		/* The compiler knows the table, the verifier does not. */
		asm volatile("" : "+r"(stage), "+r"(bucket));
		if (stage < PATHPROF_STAGE_MAX && bucket < HIST_BUCKETS)
			__sync_fetch_and_add(&times->hist[stage][bucket], 1);
	}
}

static __always_inline bool same_path(const struct path_key *a,
				      const struct path_key *b)
{
	const __u64 *x = (const __u64 *)a, *y = (const __u64 *)b;
	__u64 differ = 0;
	int i;

#pragma unroll
	for (i = 0; i < PATH_KEY_SHORT; i++)
		differ |= x[i] ^ y[i];
	if (differ || a->n <= PATH_SHORT)
		return !differ;
#pragma unroll
	for (; i < PATH_KEY_WORDS; i++)
		differ |= x[i] ^ y[i];
	return !differ;
}

/* What a packet before this one has left behind its last stage. */
static __always_inline void path_clear(struct path_key *key)
{
	__u32 i;

	for (i = PATH_SHORT; i < PATH_STAGES; i++)
		if (i >= key->n)
			key->stages[i] = 0;
}

/* The entry of a path; PATH_PATHS if the table is full. */
static __always_inline __u32 path_find(const struct tracked_pkt *t)
{
	__u32 hash, at, i;
	struct path_entry *e;
	__u64 state;

	hash = t->hash ^ t->path.facts * 0x9e3779b1 ^
	       (t->path.flags ^ t->path.end << 20 ^ t->path.reason << 24 ^
		(__u32)t->path.location << 8) *
	       0x85ebca6b;
	if (drop_stacks_on)
		hash ^= (t->path.location >> DROP_STACK_SHIFT) * 0x9e3779b1;
	hash ^= hash >> 15;
	for (i = 0; i < PATH_PROBES; i++) {
		at = (hash + i) & (PATH_PATHS - 1);
		e = &path_entries[at];
		asm volatile("" : "+r"(e));
		state = READ_ONCE(e->state);
		if (state == PATH_USED) {
			if (same_path(&e->key, &t->path))
				return at;
		} else if (state == PATH_FREE &&
			   !__sync_val_compare_and_swap(&e->state, PATH_FREE,
							PATH_BUSY)) {
			e->key = t->path;
			path_clear(&e->key);
			WRITE_ONCE(e->state, PATH_USED);
			return at;
		}
	}
	return PATH_PATHS;
}

/* The stages of a packet on their way into the sums of its path. */
struct stage_sums {
	const struct tracked_pkt *t;
	struct path_value *v;
	__u64 all, wait;
};

/*
 * False behind the last stage.  Their number is read each time: the verifier
 * would walk what follows once for each number that it knows.
 */
static __always_inline bool stage_sum(struct stage_sums *s, __u32 i)
{
	__u64 ns;

	if (i >= s->t->path.n)
		return false;
	ns = s->t->stage_ns[i];
	s->all += ns;
	s->wait += ns * stage_waits(s->t->path.stages[i]);
	__sync_fetch_and_add(&s->v->stage_ns[i], ns);
	return true;
}

/* The first ones without a loop, as most paths are short: half the cost. */
static __always_inline void stages_sum(struct stage_sums *s)
{
	__u32 i;

	if (!stage_sum(s, 0) || !stage_sum(s, 1) || !stage_sum(s, 2) ||
	    !stage_sum(s, 3) || !stage_sum(s, 4) || !stage_sum(s, 5) ||
	    !stage_sum(s, 6) || !stage_sum(s, 7))
		return;
	for (i = 8; i < PATH_STAGES; i++)
		if (!stage_sum(s, i))
			break;
}

/* Add a locked packet to its path's sums.  The caller frees the entry. */
__noinline int path_sum(struct tracked_pkt *t, __u32 end)
{
	struct stage_sums sums = {};
	struct path_value *v;
	__u32 at, i;
	__u64 work;

	if (!t || (config.stack && (config.udp || config.icmp) && !t->path.dir))
		return 0;
	/* It ended before that was known. */
	if (((config.by_owner || config.ifindex || pcap_length) &&
	     t->undecided) || (nat_on && t->unmatched)) {
		disown(t);
		return 0;
	}
	t->path.end = end;
	if (t->path.n > PATH_SHORT)
		path_clear(&t->path);
	if (events_on)
		event_put(t, EV_END, t->last_ns);
	at = path_find(t);
	v = bpf_map_lookup_elem(&path_values, &at);
	if (!v) {
		count(CN_MAP_FULL);
		return 0;
	}
	if (config.stage_times)
		stages_took(t);
	sums.t = t;
	sums.v = v;
	stages_sum(&sums);
	work = sums.all - sums.wait;
	__sync_fetch_and_add(&v->packets, 1);
	__sync_fetch_and_add(&v->segments, t->segments);
	__sync_fetch_and_add(&v->bytes, t->bytes);
	__sync_fetch_and_add(&v->work_ns, work);
	__sync_fetch_and_add(&v->wait_ns, sums.wait);
	detail_sum(t, at, work, sums.wait);
	i = log2_u64(work);
	/* The compiler knows the table, the verifier does not. */
	asm volatile("" : "+r"(i));
	if (i < HIST_BUCKETS)
		__sync_fetch_and_add(&v->hist[i], 1);
	return 0;
}

#endif
