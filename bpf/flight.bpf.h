/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The table of packets in flight: a fixed, set-associative array keyed by the
 * packet's address and direction.  A packet is found again from any CPU and
 * context, across queues and migrations, with one cache line of compares and
 * no allocation.  A key's lowest bits are flags (addresses are aligned):
 * KEY_TX tells directions apart, because over loopback and veth the receiver
 * works on a packet before the sender's driver call has returned; KEY_BUSY
 * marks an entry somebody is writing.
 */
#ifndef PATHPROF_FLIGHT_BPF_H
#define PATHPROF_FLIGHT_BPF_H

#include "compat.bpf.h"
#include "pathprof.h"

#define KEY_TX		1ULL
#define KEY_BUSY	2ULL
#define NO_FLIGHT	0xffffffffU

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, FLIGHTS);
	__type(key, __u32);
	__type(value, struct flight);
} flights SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(max_entries, PATH_PATHS);
	__type(key, struct path_key);
	__type(value, struct path_value);
} paths SEC(".maps");

struct counts {
	__u64 ends[PATHPROF_END_MAX];
	__u64 counters[PATHPROF_COUNTER_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct counts);
} counts SEC(".maps");

/* The keys of `flights`, apart so that a search touches one cache line. */
__u64 flight_keys[FLIGHTS] __attribute__((aligned(64)));
/* Entries in use: while 0, hooks of unsampled packets end at once. */
__s64 flights_active;

static __always_inline bool flights_any(void)
{
	return READ_ONCE(flights_active) > 0;
}

/* Userspace reads: nothing may change any more. */
static __always_inline bool flights_frozen(void)
{
	return READ_ONCE(flights_active) < 0;
}

static const struct path_value zero_path;

#define STAGE_BIT_WORK	0
#define STAGE_BIT_END	0
#define STAGE_BIT_WAIT	1
#define STAGE(id, sym, name, dir, order, kind, hooks, meaning) \
	| ((__u64)STAGE_BIT_##kind << id)
#define WAIT_STAGES	(0ULL PATHPROF_STAGES(STAGE))
static const __u64 wait_stages = WAIT_STAGES;
#undef STAGE

static __always_inline __u64 stage_waits(__u8 stage)
{
	return wait_stages >> (stage & 63) & 1;
}

/* Atomic, as a softirq may interrupt the same sum in process context. */
static __always_inline void count(enum pathprof_counter id)
{
	struct counts *c = bpf_map_lookup_elem(&counts, &(__u32){0});

	if (c)
		__sync_fetch_and_add(&c->counters[id], 1);
}

static __always_inline void count_end(__u32 end)
{
	struct counts *c = bpf_map_lookup_elem(&counts, &(__u32){0});

	if (c)
		__sync_fetch_and_add(&c->ends[end & (PATHPROF_END_MAX - 1)], 1);
}

/*
 * From here on, functions that are not static are those the verifier shall
 * walk once per program, on their own account, instead of once per call and
 * per state of the caller: loading costs a few hundred steps per program.
 */
static __always_inline __u32 flight_set(__u64 key)
{
	/* Drop KEY_TX, so that both directions share a line. */
	__u64 h = (key >> 6) * 0x9e3779b97f4a7c15ULL;

	return (h >> 40 & (FLIGHT_SETS - 1)) * FLIGHT_WAYS;
}

/* Find and lock; NO_FLIGHT if the packet is not followed. */
__noinline __u32 flight_lock(__u64 key)
{
	__u32 set = flight_set(key);
	__u32 i;

	for (i = 0; i < FLIGHT_WAYS; i++) {
		__u32 at = (set + i) & (FLIGHTS - 1);

		if (READ_ONCE(flight_keys[at]) != key)
			continue;
		if (__sync_val_compare_and_swap(&flight_keys[at], key,
						key | KEY_BUSY) == key)
			return at;
	}
	return NO_FLIGHT;
}

static __always_inline void flight_unlock(__u32 at, __u64 key)
{
	WRITE_ONCE(flight_keys[at & (FLIGHTS - 1)], key);
}

static __always_inline void flight_release(__u32 at)
{
	WRITE_ONCE(flight_keys[at & (FLIGHTS - 1)], 0);
	__sync_fetch_and_add(&flights_active, -1);
}

/* Add a stage to a locked flight; time since the last one is billed to it. */
__noinline int flight_mark(struct flight *f, __u32 stage, __u64 now)
{
	__u32 n;

	if (!f)
		return 0;
	n = f->path.n;
	if (n && n <= PATH_STAGES) {
		f->stage_ns[(n - 1) & (PATH_STAGES - 1)] += now - f->last_ns;
		/* One stage hit repeatedly, as by short reads, stays one. */
		if (f->path.stages[(n - 1) & (PATH_STAGES - 1)] == stage) {
			f->last_ns = now;
			return 0;
		}
	}
	f->last_ns = now;
	if (n >= PATH_STAGES) {
		f->path.flags |= PF_CUT;
		return 0;
	}
	f->path.stages[n & (PATH_STAGES - 1)] = stage;
	f->path.n = n + 1;
	return 0;
}

static __always_inline __u8 flight_last(const struct flight *f)
{
	return f->path.stages[(f->path.n - 1) & (PATH_STAGES - 1)];
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

static __always_inline struct flight *flight_at(__u32 at)
{
	return bpf_map_lookup_elem(&flights, &at);
}

struct stage_sum {
	struct flight *f;
	struct path_value *v;
	__u64 all, wait;
};

static int sum_stage(__u32 i, struct stage_sum *s)
{
	__u64 ns;

	i &= PATH_STAGES - 1;
	ns = s->f->stage_ns[i];
	s->all += ns;
	s->wait += ns & -stage_waits(s->f->path.stages[i]);
	__sync_fetch_and_add(&s->v->stage_ns[i], ns);
	return 0;
}

/* Add a locked flight to its path's sums.  The caller frees the entry. */
__noinline int flight_sum(__u32 at, __u32 end)
{
	struct flight *f = flight_at(at);
	struct stage_sum sum = {};
	struct path_value *v;
	__u64 work;
	__u32 i;

	if (!f)
		return 0;
	f->path.end = end;
	v = bpf_map_lookup_elem(&paths, &f->path);
	if (!v) {
		bpf_map_update_elem(&paths, &f->path, &zero_path, BPF_NOEXIST);
		v = bpf_map_lookup_elem(&paths, &f->path);
		if (!v) {
			count(CN_MAP_FULL);
			return 0;
		}
	}
	/* The helper's body is walked once; a loop, 32 times. */
	sum.f = f;
	sum.v = v;
	bpf_loop(f->path.n, sum_stage, &sum, 0);
	work = sum.all - sum.wait;
	__sync_fetch_and_add(&v->packets, 1);
	__sync_fetch_and_add(&v->segments, f->segments);
	__sync_fetch_and_add(&v->bytes, f->bytes);
	__sync_fetch_and_add(&v->work_ns, work);
	__sync_fetch_and_add(&v->wait_ns, sum.wait);
	i = log2_u64(work);
	/* The compiler knows the table, the verifier does not. */
	asm volatile("" : "+r"(i));
	if (i < HIST_BUCKETS)
		__sync_fetch_and_add(&v->hist[i], 1);
	count_end(end);
	return 0;
}

/*
 * Make room in a full set: give up the entry that has waited longest for a
 * reader or a busy socket.  Entries being worked on are never taken.
 */
__noinline __u32 flight_evict(__u64 key)
{
	__u32 set = flight_set(key), victim = NO_FLIGHT, i;
	__u64 oldest = ~0ULL, k;
	struct flight *f;

	for (i = 0; i < FLIGHT_WAYS; i++) {
		__u32 at = (set + i) & (FLIGHTS - 1);

		f = flight_at(at);
		if (!f || f->last_ns >= oldest)
			continue;
		if (!stage_waits(flight_last(f)))
			continue;
		oldest = f->last_ns;
		victim = at;
	}
	if (victim == NO_FLIGHT)
		return NO_FLIGHT;
	victim &= FLIGHTS - 1;
	k = READ_ONCE(flight_keys[victim]);
	if (!k || k & KEY_BUSY)
		return NO_FLIGHT;
	if (__sync_val_compare_and_swap(&flight_keys[victim], k,
					k | KEY_BUSY) != k)
		return NO_FLIGHT;
	f = flight_at(victim);
	if (f && stage_waits(flight_last(f))) {
		flight_sum(victim, END_EVICTED);
		__sync_fetch_and_add(&flights_active, -1);
		return victim;
	}
	flight_unlock(victim, k);
	return NO_FLIGHT;
}

/* A free entry, locked; NO_FLIGHT (counted) if there is none. */
__noinline __u32 flight_new(__u64 key)
{
	__u32 set = flight_set(key), at, i;

	for (i = 0; i < FLIGHT_WAYS; i++) {
		at = (set + i) & (FLIGHTS - 1);
		if (READ_ONCE(flight_keys[at]))
			continue;
		if (!__sync_val_compare_and_swap(&flight_keys[at], 0,
						 key | KEY_BUSY))
			goto found;
	}
	at = flight_evict(key);
	if (at == NO_FLIGHT) {
		count(CN_NO_SLOT);
		return NO_FLIGHT;
	}
	WRITE_ONCE(flight_keys[at & (FLIGHTS - 1)], key | KEY_BUSY);
found:
	__sync_fetch_and_add(&flights_active, 1);
	return at;
}

static __always_inline void flight_init(struct flight *f, __u8 dir)
{
	__builtin_memset(f, 0, sizeof(*f));
	f->path.dir = dir;
	f->segments = 1;
}

/* A stage that only extends the path, with flags learned on the way. */
__noinline int follow(__u64 key, __u32 stage, __u32 flags)
{
	struct flight *f;
	__u32 at;

	if (!flights_any())
		return 0;
	at = flight_lock(key);
	if (at == NO_FLIGHT)
		return 0;
	f = flight_at(at);
	if (f) {
		f->path.flags |= flags;
		flight_mark(f, stage, bpf_ktime_get_ns());
	}
	flight_unlock(at, key);
	return 0;
}

/* The last stage of a path. */
__noinline int follow_end(__u64 key, __u32 stage, __u32 end)
{
	struct flight *f;
	__u32 at;

	if (!flights_any())
		return 0;
	at = flight_lock(key);
	if (at == NO_FLIGHT)
		return 0;
	f = flight_at(at);
	if (f) {
		flight_mark(f, stage, bpf_ktime_get_ns());
		flight_sum(at, end);
	}
	flight_release(at);
	return 0;
}

/* What one followed stage costs here, in nanoseconds; 0: not measured. */
__u64 probe_ns;

#define PROBE_ROUNDS	1024
#define PROBE_KEY	0x40ULL	/* no packet has this address */

static int probe_round(__u32 i, void *unused)
{
	(void)i;
	(void)unused;
	return follow(PROBE_KEY, ST_RX_IP, 0);
}

/* Time follow() on a packet that does not exist; its entry is then freed. */
static __always_inline void probe_measure(void)
{
	__u32 at = flight_new(PROBE_KEY);
	struct flight *f;
	__u64 begin;

	if (at == NO_FLIGHT)
		return;
	f = flight_at(at);
	if (f)
		flight_init(f, DIR_RX);
	flight_unlock(at, PROBE_KEY);
	begin = bpf_ktime_get_ns();
	bpf_loop(PROBE_ROUNDS, probe_round, 0, 0);
	probe_ns = (bpf_ktime_get_ns() - begin) / PROBE_ROUNDS;
	at = flight_lock(PROBE_KEY);
	if (at != NO_FLIGHT)
		flight_release(at);
}

#endif
