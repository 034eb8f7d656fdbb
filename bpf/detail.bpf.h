/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What can be kept of a followed packet beside its path: where it belongs
 * (port, device, namespace, cgroup), for the groups of `pathprof top`; and the
 * state of its connection, for --state.  Unless asked for, both are constants 0
 * and the verifier removes the code.
 */
#ifndef PATHPROF_DETAIL_BPF_H
#define PATHPROF_DETAIL_BPF_H

#include "compat.bpf.h"
#include "event.bpf.h"
#include "pathprof.h"

const volatile bool groups_on = false;
const volatile bool state_on = false;

/* By the place of the packet in tracked_pkts. */
extern struct tracked_pkt tracked_pkts[TRACKED_MAX];
struct packet_detail details[TRACKED_MAX] __attribute__((aligned(64)));

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GROUPS_MAX);
	__type(key, struct group_key);
	__type(value, struct group_value);
} groups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PATH_PATHS);
	__type(key, __u32);
	__type(value, struct path_state);
} path_states SEC(".maps");

static __always_inline struct packet_detail *detail_of(struct tracked_pkt *t)
{
	__u64 at = (address(t) - address(tracked_pkts)) / sizeof(*t);

	at &= TRACKED_MAX - 1;
	asm volatile("" : "+r"(at));
	return &details[at & (TRACKED_MAX - 1)];
}

/* A packet is followed from here on; ports in host order. */
static __always_inline void detail_begin(struct tracked_pkt *t,
					 struct net_device *dev, __u16 port)
{
	struct packet_detail *d;

	if (!groups_on && !state_on)
		return;
	d = detail_of(t);
	__builtin_memset(d, 0, sizeof(*d));
	d->where.port = port;
	if (dev) {
		d->where.ifindex = dev->ifindex;
		d->where.netns = dev->nd_net.net->ns.inum;
	}
}

/* The lower port is the service's, of two that are not known to be one. */
static __always_inline __u16 lower_port(__u16 a, __u16 b)
{
	return a < b ? a : b;
}

/* The port of a connection, where the packet's own headers were not read. */
static __always_inline __u16 port_of(struct sock *sk)
{
	return lower_port(BPF_CORE_READ(sk, __sk_common.skc_num),
			  bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport)));
}

static __always_inline void state_read(struct packet_detail *d, __u64 sock)
{
	struct tcp_sock *tp = (struct tcp_sock *)sock;
	struct sock *sk = (struct sock *)sock;

	d->state[STATE_CWND] = BPF_CORE_READ(tp, snd_cwnd);
	d->state[STATE_SND_WND] = BPF_CORE_READ(tp, snd_wnd);
	d->state[STATE_RCV_WND] = BPF_CORE_READ(tp, rcv_wnd);
	d->state[STATE_SRTT] = BPF_CORE_READ(tp, srtt_us) >> 3;
	d->state[STATE_IN_FLIGHT] = BPF_CORE_READ(tp, packets_out);
	d->state[STATE_RMEM] = BPF_CORE_READ(sk, sk_backlog.rmem_alloc.counter);
	d->state[STATE_WMEM] = BPF_CORE_READ(sk, sk_wmem_queued);
	d->state[STATE_BACKLOG] = BPF_CORE_READ(sk, sk_backlog.len);
	d->state[STATE_RCV_QUEUE] = BPF_CORE_READ(sk, sk_receive_queue.qlen);
	d->state[STATE_SND_QUEUE] = BPF_CORE_READ(sk, sk_write_queue.qlen);
	d->has_state = 1;
}

/* The state as an event of its own. */
static __always_inline void state_event(struct tracked_pkt *t,
					const struct packet_detail *d)
{
	struct event_state *e;
	int i;

	if (!events_on)
		return;
	e = bpf_ringbuf_reserve(&event_ring, sizeof(*e), 0);
	if (!e) {
		__sync_fetch_and_add(&events_lost, 1);
	} else {
		event_fill(&e->event, t, EV_STATE, t->last_ns);
		for (i = 0; i < STATE_MAX; i++)
			e->values[i] = d->state[i];
		bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	}
	t->events++;
}

/* The packet's socket, which is a TCP connection's, and whole. */
__noinline int detail_sock(struct tracked_pkt *t, __u64 sk)
{
	struct packet_detail *d;

	if (!t || (!groups_on && !state_on))
		return 0;
	d = detail_of(t);
	if (groups_on)
		d->where.cgroup = BPF_CORE_READ((struct sock *)sk,
						sk_cgrp_data.cgroup, kn, id);
	if (state_on && !d->has_state) {
		state_read(d, sk);
		state_event(t, d);
	}
	return 0;
}

static __always_inline void group_add(struct packet_detail *d,
				      const struct tracked_pkt *t, __u64 work,
				      __u64 wait)
{
	struct group_value none = {}, *v;

	v = bpf_map_lookup_elem(&groups, &d->where);
	if (!v) {
		bpf_map_update_elem(&groups, &d->where, &none, BPF_NOEXIST);
		v = bpf_map_lookup_elem(&groups, &d->where);
	}
	if (!v)
		return;
	__sync_fetch_and_add(&v->packets, 1);
	__sync_fetch_and_add(&v->segments, t->segments);
	__sync_fetch_and_add(&v->bytes, t->bytes);
	__sync_fetch_and_add(&v->work_ns, work);
	__sync_fetch_and_add(&v->wait_ns, wait);
	if (t->path.end == END_DROPPED)
		__sync_fetch_and_add(&v->dropped, 1);
}

static __always_inline void state_add(const struct packet_detail *d, __u32 at)
{
	struct path_state *s = bpf_map_lookup_elem(&path_states, &at);
	__u32 v, i;

	if (!s || !d->has_state)
		return;
	/* One CPU's; a sum that an interrupt overwrites is off by a packet. */
	for (i = 0; i < STATE_MAX; i++) {
		v = d->state[i];
		if (!s->packets || v < s->least[i])
			s->least[i] = v;
		if (v > s->most[i])
			s->most[i] = v;
		s->sum[i] += v;
	}
	s->packets++;
}

/* A packet is added to the sums of its path, the one at `path`. */
static __always_inline void detail_sum(struct tracked_pkt *t, __u32 path,
				       __u64 work, __u64 wait)
{
	struct packet_detail *d;

	if (!groups_on && !state_on)
		return;
	d = detail_of(t);
	if (groups_on)
		group_add(d, t, work, wait);
	if (state_on)
		state_add(d, path);
}

#endif
