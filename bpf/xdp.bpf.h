/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * With --stages: XDP programs on packets that have a buffer already, as all of
 * generic XDP and those of veth.  What such a program makes of a packet (its
 * verdict) is where the path goes on: up the stack, dropped, sent elsewhere as a
 * frame, or copied to an AF_XDP socket.  A frame is not followed.
 */
#ifndef PATHPROF_XDP_BPF_H
#define PATHPROF_XDP_BPF_H

#include "compat.bpf.h"
#include "forward.bpf.h"
#include "identity.bpf.h"
#include "path.bpf.h"
#include "stack.bpf.h"
#include "tracked.bpf.h"

#define XDP_PASS	2

/* The packet that generic XDP has in hand on this CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} xdp_in_hand SEC(".maps");

/* The packet that native XDP of veth works on, on this CPU; 0: none. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} xdp_at_veth SEC(".maps");

/* veth calls this for every packet where it polls, with a program or not. */
static __always_inline void xdp_native(struct veth_rq *rq, struct sk_buff *skb)
{
	__u64 *key;

	if (!tracked_any() || !BPF_CORE_READ(rq, xdp_prog))
		return;
	key = bpf_map_lookup_elem(&xdp_at_veth, &(__u32){ 0 });
	if (key)
		*key = address(skb);
	follow(address(skb), ST_XDP_NATIVE, 0, 0);
}

/*
 * A buffer is dropped that no entry has.  It is the copy that veth made of the
 * packet for the program, if the program is at work.
 */
static __always_inline void xdp_copy_dropped(__u32 reason, __u64 location)
{
	__u64 *key = bpf_map_lookup_elem(&xdp_at_veth, &(__u32){ 0 });

	if (key && *key)
		stack_end(*key, END_DROPPED, reason, location);
}

/* A program has sent a packet elsewhere, and it has not gone on from there. */
__noinline int xdp_frame(__u64 key, __u32 stage)
{
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_find(key, &at);
	if (!t)
		return 0;
	if (t->last != stage) {
		tracked_unlock(at, key);
		return 0;
	}
	tracked_mark(t, ST_XDP_REDIRECT, bpf_ktime_get_ns());
	path_sum(t, t->path.dir == DIR_RX ? END_FORWARDED : END_SENT);
	tracked_release(at);
	return 0;
}

/*
 * The program has returned, and left the packet in this buffer or in another
 * one.  Without one it is a frame now, unless the program dropped it, which has
 * ended its path.
 */
static __always_inline void xdp_native_done(struct sk_buff *skb,
					    struct sk_buff *left)
{
	__u64 *key = bpf_map_lookup_elem(&xdp_at_veth, &(__u32){ 0 });

	if (key)
		*key = 0;
	if (left)
		stack_moves(address(skb), address(left));
	else
		xdp_frame(address(skb), ST_XDP_NATIVE);
}

/* Called for all devices of the host, if one has a program. */
static __always_inline void xdp_generic(__u64 program, __u64 packet)
{
	__u64 *key = bpf_map_lookup_elem(&xdp_in_hand, &(__u32){ 0 });

	if (!program)
		return;
	if (key)
		*key = packet;
	stage_call(packet, ST_XDP_GENERIC);
}

/* From 6.9 on it may have been copied before the program runs. */
static __always_inline void xdp_generic_runs(struct sk_buff *skb)
{
	__u64 *key = bpf_map_lookup_elem(&xdp_in_hand, &(__u32){ 0 });

	if (!key)
		return;
	stack_moves(*key, address(skb));
	*key = address(skb);
}

/* A packet that is still here, and not passed on, is at the driver. */
static __always_inline void xdp_generic_done(__u64 packet, int verdict)
{
	__u64 *key = bpf_map_lookup_elem(&xdp_in_hand, &(__u32){ 0 });

	if (verdict == XDP_PASS)
		stage_return(packet, ST_XDP_GENERIC);
	else if (key)
		xdp_frame(*key, ST_XDP_GENERIC);
}

/* It is freed next, as one that was read. */
static __always_inline void xdp_to_socket(int error)
{
	__u64 *key = bpf_map_lookup_elem(&xdp_in_hand, &(__u32){ 0 });

	if (key && !error)
		follow(*key, ST_XSK, PF_COPIED, 0);
}

#endif
