/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stages between two devices: those that have an end of their own, after which
 * the packet is back in the stage before; netfilter's hooks by their number;
 * tunnels with workers; and what software splits, which keeps its identity.
 */
#ifndef PATHPROF_FORWARD_BPF_H
#define PATHPROF_FORWARD_BPF_H

#include "compat.bpf.h"
#include "event.bpf.h"
#include "path.bpf.h"
#include "stack.bpf.h"
#include "tracked.bpf.h"

/* include/uapi/linux/netfilter.h */
#define NFPROTO_IPV4	2
#define NFPROTO_NETDEV	5
#define NFPROTO_BRIDGE	7
#define NFPROTO_IPV6	10

static __always_inline __u32 nf_stage(const struct nf_hook_state *state)
{
	switch (state->pf) {
	case NFPROTO_NETDEV:
		return ST_NF_DEVICE;
	case NFPROTO_BRIDGE:
		return ST_NF_BRIDGE;
	case NFPROTO_IPV4:
	case NFPROTO_IPV6:
		/* PREROUTING is 0, and stages have the order of hooks. */
		return ST_NF_PRE + (state->hook < 5 ? state->hook : 0);
	}
	return 0;
}

static __always_inline int nf_hook(struct sk_buff *skb,
				   const struct nf_hook_state *state)
{
	__u32 stage = nf_stage(state);

	return stage ? follow(address(skb), stage, 0, 0) : 0;
}

/* --stage: which argument of each function is the packet. */
const volatile __u8 user_arguments[USER_STAGES] = {};

/*
 * The stages that are calls: after the return, the packet is in the stage that
 * called.  Its place in callers[] of tracked_pkt is by stage, as one call may
 * be within another.
 */
static __always_inline __u32 call_at(__u32 stage)
{
	switch (stage) {
	case ST_CONNTRACK:
		return USER_STAGES;
	case ST_TC:
		return USER_STAGES + 1;
	case ST_XDP_GENERIC:
		return USER_STAGES + 2;
	case ST_TAP:
		return USER_STAGES + 3;
	}
	return stage - ST_USER;
}

_Static_assert(USER_STAGES + 3 < CALLS, "a place for each call");

/* The packet is in the call.  A function of --stage may get none: key 0. */
__noinline int call_enter(__u64 key, __u32 stage, __u32 call)
{
	struct tracked_pkt *t;
	__u32 at;

	t = key ? tracked_find(key, &at) : NULL;
	if (!t)
		return 0;
	if (t->last != stage) {
		t->callers[call & (CALLS - 1)] = t->last;
		tracked_mark(t, stage, bpf_ktime_get_ns());
	}
	tracked_unlock(at, key);
	return 0;
}

/*
 * Something within the call may have ended the packet, or handed it to another
 * CPU: only one that is still in the call is locked.
 */
__noinline int call_leave(__u64 key, __u32 stage, __u32 call)
{
	struct tracked_pkt *t;
	__u32 at;

	t = key ? tracked_in(key, stage, &at) : NULL;
	if (!t || !tracked_claim(at, key))
		return 0;
	if (t->last == stage)
		tracked_mark(t, t->callers[call & (CALLS - 1)],
			     bpf_ktime_get_ns());
	tracked_unlock(at, key);
	return 0;
}

static __always_inline int stage_call(__u64 key, __u32 stage)
{
	return call_enter(key, stage, call_at(stage));
}

static __always_inline int stage_return(__u64 key, __u32 stage)
{
	return call_leave(key, stage, call_at(stage));
}

/* From one stage to another, by the worker that has the packet. */
__noinline int stage_from(__u64 key, __u32 from, __u32 to)
{
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_find(key, &at);
	if (!t)
		return 0;
	if (t->last == from)
		tracked_mark(t, to, bpf_ktime_get_ns());
	tracked_unlock(at, key);
	return 0;
}

/*
 * A function has returned that gives a packet to a worker.  On another CPU that
 * worker may have it already: with the entry locked here, the hooks there would
 * not find it, and begin another path.  So only the clock is noted, and the
 * worker's first hook enters the wait.
 */
__noinline int stage_handed(__u64 key, __u32 from)
{
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_in(key, from, &at);
	if (t)
		WRITE_ONCE(t->handed_ns, bpf_ktime_get_ns());
	return 0;
}

/*
 * A worker of WireGuard begins.  If the function that called it has not returned
 * since the packet's last stage, there was no wait.
 */
__noinline int crypt_begin(__u64 key)
{
	struct tracked_pkt *t;
	__u64 now, handed;
	__u32 at;

	t = tracked_find(key, &at);
	if (!t)
		return 0;
	now = bpf_ktime_get_ns();
	handed = READ_ONCE(t->handed_ns);
	if (t->last != ST_CRYPT_WAIT)
		tracked_mark(t, ST_CRYPT_WAIT,
			     handed - t->last_ns < now - t->last_ns ? handed : now);
	tracked_mark(t, ST_CRYPT, now);
	tracked_unlock(at, key);
	return 0;
}

/* A hook with a pointer to the pointer of a packet: the packet's key. */
static __always_inline __u64 key_at(void *ctx)
{
	__u64 at = 0, key = 0;

	bpf_get_func_arg(ctx, 0, &at);
	bpf_probe_read_kernel(&key, sizeof(key), (void *)at);
	return key;
}

/* The first argument: the packet of a program of tc. */
static __always_inline __u64 key_first(void *ctx)
{
	__u64 key = 0;

	bpf_get_func_arg(ctx, 0, &key);
	return key;
}

/* The packet of a function of --stage. */
static __always_inline __u64 key_user(void *ctx, __u32 n)
{
	__u64 key = 0;

	bpf_get_func_arg(ctx, user_arguments[n], &key);
	return key;
}

/* The second argument of do_xdp_generic(). */
static __always_inline __u64 key_xdp(void *ctx)
{
	__u64 at = 0, key = 0;

	bpf_get_func_arg(ctx, 1, &at);
	if (!xdp_has_pointer())
		return at;
	bpf_probe_read_kernel(&key, sizeof(key), (void *)at);
	return key;
}

/* What a function has returned. */
static __always_inline int returned(void *ctx)
{
	__u64 value = 0;

	bpf_get_func_ret(ctx, &value);
	return value;
}

#define SEGMENTS_MAX	256

struct split {
	__u64 parent;		/* its place in the table */
	__u64 segment;
	__u32 left;		/* bytes of payload */
	__u32 size;		/* of one segment */
	__u32 any;		/* is a segment followed? */
};

/* One segment inherits the path so far; the first one the number, too. */
static int split_one(__u32 i, void *arg)
{
	struct split *s = arg;
	struct tracked_pkt *from, *to;
	struct sk_buff *segment = (void *)s->segment;
	__u64 key = s->segment;
	__u32 at;

	if (!key)
		return 1;
	s->segment = address(BPF_CORE_READ(segment, next));
	stack_leftover(key);
	at = tracked_new(key);
	if (i) {
		count(CN_SAMPLED);
		count(CN_SPLIT);
	}
	if (at == NOT_TRACKED)
		return 0;
	from = tracked_at(s->parent);
	to = tracked_at(at);
	__builtin_memcpy(to, from, sizeof(*to));
	if (groups_on || state_on)
		__builtin_memcpy(detail_of(to), detail_of(from),
				 sizeof(struct packet_detail));
	to->segments = 1;
	to->bytes = s->left < s->size ? s->left : s->size;
	s->left -= to->bytes;
	if (i && events_on) {
		to->events = 0;
		event_first(to);
	}
	tracked_mark(to, ST_TX_SPLIT, bpf_ktime_get_ns());
	/* It is WireGuard that splits there, and queues them. */
	if (from->last == ST_ENCAP)
		tracked_mark(to, ST_CRYPT_WAIT, to->last_ns);
	tracked_unlock(at, key);
	/* Not a number: the verifier would walk all SEGMENTS_MAX rounds. */
	s->any = 1;
	return 0;
}

/* __skb_gso_segment() has returned a list of packets, which replace one. */
static __always_inline void stack_split(struct sk_buff *skb,
					struct sk_buff *list)
{
	__u64 key = address(skb), first = address(list);
	struct split s = {};
	struct tracked_pkt *t;
	__u32 at;

	if (!first || first >= (__u64)-4095)
		return;
	t = tracked_find(key, &at);
	if (!t)
		return;
	t->path.facts |= FACT_SPLIT;
	s.parent = at;
	s.segment = first;
	s.left = t->bytes;
	s.size = BPF_CORE_READ(shared_info(skb), gso_size);
	bpf_loop(SEGMENTS_MAX, split_one, &s, 0);
	if (!s.any) {
		tracked_mark(t, ST_TX_SPLIT, bpf_ktime_get_ns());
		path_sum(t, END_FREED);
	}
	/* Its path goes on in those of its segments. */
	tracked_release(at);
}

#endif
