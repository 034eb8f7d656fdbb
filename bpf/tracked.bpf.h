/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of followed packets: a fixed, set-associative array keyed by the
 * packet's address and direction.  A packet is found again from any CPU and
 * context, across queues and migrations, with one cache line of compares and
 * no allocation.  A key's lowest bits are flags (addresses are aligned):
 * KEY_TX separates the directions, because over loopback and veth the receiver
 * works on a packet before the sender's driver call has returned; KEY_BUSY
 * marks an entry that is being written.  An end (END_*) beside KEY_BUSY is left
 * there for the writer: see tracked_hand().
 */
#ifndef PATHPROF_TRACKED_BPF_H
#define PATHPROF_TRACKED_BPF_H

#include "compat.bpf.h"
#include "event.bpf.h"
#include "path.bpf.h"

#define KEY_TX		1ULL
#define KEY_BUSY	2ULL
#define KEY_END_SHIFT	2
#define NOT_TRACKED	0xffffffffU

struct tracked_pkt tracked_pkts[TRACKED_MAX] __attribute__((aligned(64)));
/* The keys of `tracked_pkts`, apart so that a search touches one cache line. */
__u64 tracked_keys[TRACKED_MAX] __attribute__((aligned(64)));
/* Entries in use: while 0, hooks of unsampled packets end at once. */
__s64 tracked_count;

static __always_inline bool tracked_any(void)
{
	return READ_ONCE(tracked_count) > 0;
}

/* Userspace reads: nothing may change any more. */
static __always_inline bool tracked_frozen(void)
{
	return READ_ONCE(tracked_count) < 0;
}

static __always_inline struct tracked_pkt *tracked_at(__u32 at)
{
	struct tracked_pkt *t = &tracked_pkts[at & (TRACKED_MAX - 1)];

	/* Else the compiler computes it again for each field. */
	asm volatile("" : "+r"(t));
	return t;
}

static __always_inline __u32 tracked_set(__u64 key)
{
	/* Drop KEY_TX, so that both directions share a line. */
	__u64 h = (key >> 6) * 0x9e3779b97f4a7c15ULL;

	return (h >> 40 & (TRACKED_SETS - 1)) * TRACKED_WAYS;
}

/*
 * Functions are not static where the verifier is to walk them once per program,
 * on their own account, instead of once per call and per state of
 * the caller: loading costs a few hundred steps per program.  Those that return
 * a place are weak: clang 19 and newer know the values that a strong one
 * returns, and drop the masks that the verifier needs to see in its callers.
 */

/* Lock the entry `at` if it still has this key. */
static __always_inline bool tracked_claim(__u32 at, __u64 key)
{
	__u64 was = __sync_val_compare_and_swap(
		&tracked_keys[at & (TRACKED_MAX - 1)], key, key | KEY_BUSY);

	/* Else the compiler makes a number of the comparison. */
	asm volatile("" : "+r"(was));
	return was == key;
}

/* Find and lock; NOT_TRACKED if the packet is not followed. */
__weak __u32 tracked_lock(__u64 key)
{
	__u32 set = tracked_set(key), i;
	__u64 *keys = &tracked_keys[set], was;

	/* Else the compiler computes the address of each. */
	asm volatile("" : "+r"(keys));
#pragma unroll
	for (i = 0; i < TRACKED_WAYS; i++) {
		if (READ_ONCE(keys[i]) != key)
			continue;
		was = __sync_val_compare_and_swap(&keys[i], key,
						  key | KEY_BUSY);
		/* Else the compiler makes a number of the comparison. */
		asm volatile("" : "+r"(was));
		if (was == key)
			return set + i;
	}
	return NOT_TRACKED;
}

/*
 * For an end that found no unlocked entry: a hook on another CPU may hold it.
 * Leave the end to that hook, which calls tracked_yield().  True if the hook has
 * unlocked the entry meanwhile, so that the caller can end the path after all.
 */
__noinline int tracked_hand(__u64 key, __u32 end)
{
	__u32 set = tracked_set(key), i;
	__u64 *keys = &tracked_keys[set], was;

	/* Else the compiler computes the address of each. */
	asm volatile("" : "+r"(keys));
	key |= KEY_BUSY;
#pragma unroll
	for (i = 0; i < TRACKED_WAYS; i++) {
		if (READ_ONCE(keys[i]) != key)
			continue;
		was = __sync_val_compare_and_swap(&keys[i], key,
					key | (__u64)end << KEY_END_SHIFT);
		/* Else the compiler makes a number of the comparison. */
		asm volatile("" : "+r"(was));
		return was != key;
	}
	return 0;
}

/*
 * Find without locking, for hooks whose key may be out of date: the packet was
 * freed meanwhile, and another one has its address.  While an entry is locked,
 * the hooks of its own packet do not find it, and lose a stage or an end.  So
 * these hooks look first, and lock what is theirs with tracked_claim().
 */
__weak __u32 tracked_seek(__u64 key)
{
	__u32 set = tracked_set(key), i;
	__u64 *keys = &tracked_keys[set];

	/* Else the compiler computes the address of each. */
	asm volatile("" : "+r"(keys));
#pragma unroll
	for (i = 0; i < TRACKED_WAYS; i++) {
		if (READ_ONCE(keys[i]) == key)
			return set + i;
	}
	return NOT_TRACKED;
}

/* The entry of a packet that is in this stage, not locked; else NULL. */
static __always_inline struct tracked_pkt *tracked_in(__u64 key, __u32 stage,
						      __u32 *at)
{
	struct tracked_pkt *t;

	if (!tracked_any())
		return NULL;
	*at = tracked_seek(key);
	if (*at == NOT_TRACKED)
		return NULL;
	t = tracked_at(*at);
	return READ_ONCE(t->last) == stage ? t : NULL;
}

/*
 * The entry of a packet that this socket works on or has queued, locked; else
 * NULL.  A later packet of the socket with the same address waits for it.
 */
static __always_inline struct tracked_pkt *tracked_of(__u64 key, __u64 sk,
						      __u32 *at)
{
	struct tracked_pkt *t;
	__u8 last;

	if (!key || !tracked_any())
		return NULL;
	*at = tracked_seek(key);
	if (*at == NOT_TRACKED)
		return NULL;
	t = tracked_at(*at);
	last = READ_ONCE(t->last);
	if (READ_ONCE(t->sk) != sk || last == ST_RX_BACKLOG ||
	    (last == ST_RX_SOCK && !(t->path.flags & (PF_UDP | PF_ICMP))))
		return NULL;
	return tracked_claim(*at, key) ? t : NULL;
}

/* The entry of a packet, locked; NULL if it is not followed. */
static __always_inline struct tracked_pkt *tracked_find(__u64 key, __u32 *at)
{
	if (!tracked_any())
		return NULL;
	*at = tracked_lock(key);
	return *at == NOT_TRACKED ? NULL : tracked_at(*at);
}

/*
 * A store that everything before it precedes: any store on x86.  BPF has no
 * other such instruction before 6.15, so elsewhere it is an exchange.
 */
static __always_inline void tracked_store(__u32 at, __u64 key)
{
#ifdef __TARGET_ARCH_x86
	asm volatile("" ::: "memory");
	WRITE_ONCE(tracked_keys[at & (TRACKED_MAX - 1)], key);
#else
	__sync_lock_test_and_set(&tracked_keys[at & (TRACKED_MAX - 1)], key);
#endif
}

static __always_inline void tracked_unlock(__u32 at, __u64 key)
{
	tracked_store(at, key);
}

/*
 * Unlock, unless the packet was ended meanwhile: how, END_*, or 0.  The entry of
 * one that was ended remains locked, and is the caller's to end.
 */
static __always_inline __u32 tracked_yield(__u32 at, __u64 key)
{
	__u64 was = __sync_val_compare_and_swap(
		&tracked_keys[at & (TRACKED_MAX - 1)], key | KEY_BUSY, key);

	/* Else the compiler makes a number of the comparison. */
	asm volatile("" : "+r"(was));
	return (was ^ key ^ KEY_BUSY) >> KEY_END_SHIFT;
}

static __always_inline void tracked_release(__u32 at)
{
	tracked_store(at, 0);
	__sync_fetch_and_add(&tracked_count, -1);
}

/* A stage hit repeatedly, as by short reads, or one that finds no room. */
__noinline int tracked_stay(struct tracked_pkt *t, __u32 stage, __u64 now)
{
	if (!t)
		return 0;
	t->stage_ns[(t->path.n - 1) & (PATH_STAGES - 1)] += now - t->last_ns;
	t->last_ns = now;
	/* The ends are decided by where the packet is, listed or not. */
	if (t->last != stage)
		t->path.flags |= PF_CUT;
	t->last = stage;
	return 0;
}

/*
 * Add a stage to a locked packet; time since the last one is billed to it. The
 * time includes pathprof's own work between the two clocks.  So hooks with
 * much to do read the clock twice or late, as tracked_leave() does.  The time
 * of the others is measured once, by calibrate.bpf.h.
 */
static __always_inline void tracked_mark(struct tracked_pkt *t, __u32 stage,
					__u64 now)
{
	__u64 from = t->last_ns, *took;
	__u32 n = t->path.n;

	if (n >= PATH_STAGES || t->last == stage) {
		tracked_stay(t, stage, now);
		goto out;
	}
	took = &t->stage_ns[n];
	/* Else the compiler computes the address of each. */
	asm volatile("" : "+r"(took));
	took[-1] += now - from;
	took[0] = 0;
	t->path.stages[n] = stage;
	t->path.n = n + 1;
	t->last = stage;
	t->last_ns = now;
	t->hash = (t->hash + stage) * 0x01000193;
out:
	if (events_on)
		event_put(t, EV_STAGE, from);
}

/*
 * Back to a stage entered before, the one at `at` of the path having lasted
 * until now: a packet that is read in parts.
 */
static __always_inline void tracked_again(struct tracked_pkt *t, __u32 at,
					 __u32 stage, __u64 now)
{
	__u64 from = t->last_ns;

	t->stage_ns[at & (PATH_STAGES - 1)] += now - from;
	t->last_ns = now;
	t->last = stage;
	if (events_on)
		event_put(t, EV_AGAIN, from);
}

/* pathprof did much since the last stage's clock: not the packet's time. */
static __always_inline void tracked_leave(struct tracked_pkt *t)
{
	t->last_ns = bpf_ktime_get_ns();
}

static __always_inline void tracked_init(struct tracked_pkt *t, __u8 dir,
					__u32 stage, __u64 now)
{
	__builtin_memset(t, 0, offsetof(struct tracked_pkt, path.stages) +
			       PATH_SHORT);
	t->path.dir = dir;
	t->segments = 1;
	t->path.stages[0] = stage;
	t->path.n = 1;
	t->stage_ns[0] = 0;
	t->last = stage;
	t->last_ns = now;
	t->hash = stage * 0x01000193;
	if (events_on)
		event_first(t);
}

/*
 * Make room in a full set: give up the entry that has waited longest for a
 * reader or a busy socket.  Entries being worked on are never taken.
 */
__weak __u32 tracked_evict(__u64 key)
{
	__u32 set = tracked_set(key), victim = NOT_TRACKED, i;
	__u64 oldest = ~0ULL, k;
	struct tracked_pkt *t;

	for (i = 0; i < TRACKED_WAYS; i++) {
		__u32 at = (set + i) & (TRACKED_MAX - 1);

		t = tracked_at(at);
		if (t->last_ns >= oldest || !stage_waits(t->last))
			continue;
		oldest = t->last_ns;
		victim = at;
	}
	if (victim == NOT_TRACKED)
		return NOT_TRACKED;
	victim &= TRACKED_MAX - 1;
	k = READ_ONCE(tracked_keys[victim]);
	if (!k || k & KEY_BUSY)
		return NOT_TRACKED;
	if (!tracked_claim(victim, k))
		return NOT_TRACKED;
	t = tracked_at(victim);
	if (stage_waits(t->last)) {
		path_sum(t, END_EVICTED);
		__sync_fetch_and_add(&tracked_count, -1);
		return victim;
	}
	tracked_unlock(victim, k);
	return NOT_TRACKED;
}

/* A free entry, locked; NOT_TRACKED (counted) if there is none. */
__weak __u32 tracked_new(__u64 key)
{
	__u32 set = tracked_set(key), at, i;

	for (i = 0; i < TRACKED_WAYS; i++) {
		at = (set + i) & (TRACKED_MAX - 1);
		if (READ_ONCE(tracked_keys[at]))
			continue;
		if (!__sync_val_compare_and_swap(&tracked_keys[at], 0,
						 key | KEY_BUSY))
			goto found;
	}
	at = tracked_evict(key);
	if (at == NOT_TRACKED) {
		count(CN_NO_SLOT);
		return NOT_TRACKED;
	}
	WRITE_ONCE(tracked_keys[at & (TRACKED_MAX - 1)], key | KEY_BUSY);
found:
	__sync_fetch_and_add(&tracked_count, 1);
	return at;
}

/* A stage that only extends the path, with the flags and facts found there. */
__noinline int follow(__u64 key, __u32 stage, __u32 flags, __u32 facts)
{
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_find(key, &at);
	if (!t)
		return 0;
	t->path.flags |= flags;
	t->path.facts |= facts;
	tracked_mark(t, stage, bpf_ktime_get_ns());
	tracked_unlock(at, key);
	return 0;
}

#endif
