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
#ifndef PATHPROF_TRACKED_BPF_H
#define PATHPROF_TRACKED_BPF_H

#include "path.bpf.h"

#define KEY_TX		1ULL
#define KEY_BUSY	2ULL
#define NO_FLIGHT	0xffffffffU

struct flight flights[FLIGHTS] __attribute__((aligned(64)));
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

static __always_inline struct flight *flight_at(__u32 at)
{
	struct flight *f = &flights[at & (FLIGHTS - 1)];

	/* Else the compiler computes it again for each field. */
	asm volatile("" : "+r"(f));
	return f;
}

static __always_inline __u32 flight_set(__u64 key)
{
	/* Drop KEY_TX, so that both directions share a line. */
	__u64 h = (key >> 6) * 0x9e3779b97f4a7c15ULL;

	return (h >> 40 & (FLIGHT_SETS - 1)) * FLIGHT_WAYS;
}

/*
 * Functions that are not static are those the verifier shall walk once per
 * program, on their own account, instead of once per call and per state of
 * the caller: loading costs a few hundred steps per program.
 */

/* Find and lock; NO_FLIGHT if the packet is not followed. */
__noinline __u32 flight_lock(__u64 key)
{
	__u32 set = flight_set(key), i;
	__u64 *keys = &flight_keys[set];

	/* Else the compiler computes the address of each. */
	asm volatile("" : "+r"(keys));
#pragma unroll
	for (i = 0; i < FLIGHT_WAYS; i++) {
		if (READ_ONCE(keys[i]) != key)
			continue;
		if (__sync_val_compare_and_swap(&keys[i], key,
						key | KEY_BUSY) == key)
			return set + i;
	}
	return NO_FLIGHT;
}

/* The entry of a packet, locked; NULL if it is not followed. */
static __always_inline struct flight *flight_find(__u64 key, __u32 *at)
{
	if (!flights_any())
		return NULL;
	*at = flight_lock(key);
	return *at == NO_FLIGHT ? NULL : flight_at(*at);
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

/*
 * Add a stage to a locked flight; time since the last one is billed to it.
 * What pathprof does between two stages' clocks is in that time.  So hooks
 * with much to do read the clock twice or late, as flight_leave() does, and
 * what the others take is measured once, by calibrate.bpf.h.
 */
static __always_inline void flight_mark(struct flight *f, __u32 stage,
					__u64 now)
{
	__u64 from = f->last_ns;
	__u32 n = f->path.n;

	f->stage_ns[(n - 1) & (PATH_STAGES - 1)] += now - from;
	f->last_ns = now;
	/* One stage hit repeatedly, as by short reads, stays one. */
	if (f->last == stage)
		goto out;
	if (n >= PATH_STAGES) {
		f->path.flags |= PF_CUT;
		goto out;
	}
	f->path.stages[n & (PATH_STAGES - 1)] = stage;
	f->stage_ns[n & (PATH_STAGES - 1)] = 0;
	f->path.n = n + 1;
	f->last = stage;
	f->hash = (f->hash + stage) * 0x01000193;
out:
	if (events_on)
		event_put(f, EV_STAGE, from);
}

/*
 * Back to a stage entered before, the one at `at` of the path having lasted
 * until now: a packet that is read in parts.
 */
static __always_inline void flight_again(struct flight *f, __u32 at,
					 __u32 stage, __u64 now)
{
	__u64 from = f->last_ns;

	f->stage_ns[at & (PATH_STAGES - 1)] += now - from;
	f->last_ns = now;
	f->last = stage;
	if (events_on)
		event_put(f, EV_AGAIN, from);
}

/* Much was done since the last stage's clock: not the packet's time. */
static __always_inline void flight_leave(struct flight *f)
{
	f->last_ns = bpf_ktime_get_ns();
}

static __always_inline void flight_init(struct flight *f, __u8 dir,
					__u32 stage, __u64 now)
{
	__builtin_memset(f, 0, offsetof(struct flight, stage_ns));
	f->path.dir = dir;
	f->segments = 1;
	f->path.stages[0] = stage;
	f->path.n = 1;
	f->stage_ns[0] = 0;
	f->last = stage;
	f->last_ns = now;
	f->hash = stage * 0x01000193;
	if (events_on)
		event_first(f);
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
		if (f->last_ns >= oldest || !stage_waits(f->last))
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
	if (stage_waits(f->last)) {
		path_sum(f, END_EVICTED);
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

/* A stage that only extends the path, with what is learned on the way. */
__noinline int follow(__u64 key, __u32 stage, __u32 flags, __u32 facts)
{
	struct flight *f;
	__u32 at;

	f = flight_find(key, &at);
	if (!f)
		return 0;
	f->path.flags |= flags;
	f->path.facts |= facts;
	flight_mark(f, stage, bpf_ktime_get_ns());
	flight_unlock(at, key);
	return 0;
}

/* The last stage of a path. */
__noinline int follow_end(__u64 key, __u32 stage, __u32 end)
{
	struct flight *f;
	__u32 at;

	f = flight_find(key, &at);
	if (!f)
		return 0;
	flight_mark(f, stage, bpf_ktime_get_ns());
	path_sum(f, end);
	flight_release(at);
	return 0;
}

/* A sampling window has closed: what has not arrived is cut off. */
static int cut_one(__u32 i, void *unused)
{
	__u64 key;

	(void)unused;
	i &= FLIGHTS - 1;
	key = READ_ONCE(flight_keys[i]);
	if (!key || key & KEY_BUSY ||
	    __sync_val_compare_and_swap(&flight_keys[i], key,
					key | KEY_BUSY) != key)
		return 0;
	path_sum(flight_at(i), END_CUT);
	flight_release(i);
	return 0;
}

#endif
