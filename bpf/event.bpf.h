/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Raw events of followed packets, for --events.  They keep what sums lose:
 * each packet's own stages, one by one, with the CPU.  Without --events
 * `events_on` is a constant 0: the verifier removes the code that depends on
 * it, and the ring buffer is not created.
 */
#ifndef PATHPROF_EVENT_BPF_H
#define PATHPROF_EVENT_BPF_H

#include "compat.bpf.h"
#include "config.bpf.h"
#include "extensions.bpf.h"
#include "pathprof.h"

const volatile bool events_on = false;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);	/* userspace sets the size */
} event_ring SEC(".maps");

__u32 event_packets;	/* numbers given out */
__u64 events_lost;	/* the ring was full */

static __always_inline void event_fill(struct event *e, struct tracked_pkt *t,
				       __u32 what, __u64 from)
{
	e->ns = t->last_ns;
	e->from = from;
	e->number = t->number;
	e->index = t->events;
	e->cpu = bpf_get_smp_processor_id();
	e->flags = t->path.flags;
	e->facts = t->path.facts;
	e->bytes = t->bytes;
	e->segments = t->segments;
	e->reason = t->path.reason;
	e->what = what;
	e->stage = t->last;
	e->end = t->path.end;
	e->dir = t->path.dir;
	e->family = t->path.family;
	e->pad = 0;
}

/*
 * Store what has just happened to a packet whose last clock was `from` before.
 * Functions that are not static are verified even if nothing calls them, so
 * each tests events_on itself.  The reader is not woken, as that would be part
 * of the packet's time: userspace polls every few milliseconds.
 */
__noinline int event_put(struct tracked_pkt *t, __u32 what, __u64 from)
{
	struct event *e;

	if (!t || !events_on || !t->number)
		return 0;
	e = bpf_ringbuf_reserve(&event_ring, sizeof(*e), 0);
	if (!e) {
		__sync_fetch_and_add(&events_lost, 1);
	} else {
		event_fill(e, t, what, from);
		bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	}
	t->events++;
	return 0;
}

/* A packet is followed from here on; its clock may not have been read yet. */
__noinline int event_first(struct tracked_pkt *t)
{
	if (!t || !events_on || !t->path.dir)
		return 0;
	t->number = __sync_fetch_and_add(&event_packets, 1) + 1;
	t->dev = 0;
	if (!t->last_ns)
		t->last_ns = bpf_ktime_get_ns();
	return event_put(t, EV_STAGE, t->last_ns);
}

static __always_inline struct event_flow *event_flow(struct tracked_pkt *t)
{
	struct event_flow *e;

	e = bpf_ringbuf_reserve(&event_ring, sizeof(*e), 0);
	if (!e)
		__sync_fetch_and_add(&events_lost, 1);
	else
		event_fill(&e->event, t, EV_FLOW, t->last_ns);
	t->events++;
	return e;
}

/* Whose packet it is, by its headers at `ip`; the device is not NULL. */
__noinline int event_headers(struct tracked_pkt *t, __u64 ip, __u64 dev)
{
	struct net_device *device = (struct net_device *)dev;
	__u32 words[10] = {}, ports[2] = {}, off, i;
	struct event_flow *e;
	bool has_ports;

	if (!t || !events_on || !t->number)
		return 0;
	bpf_probe_read_kernel(words, sizeof(words), (void *)ip);
	if (t->path.family == 4)
		off = (*(__u8 *)words & 0x0f) * 4 |
		      ((__u8 *)words)[9] << 16;
	else
		off = ipv6_transport(ip, 256);
	has_ports = !config.icmp || (off >> 16 != IPPROTO_ICMP &&
				     off >> 16 != IPPROTO_ICMPV6);
	if (has_ports)
		bpf_probe_read_kernel(ports, sizeof(ports),
				      (void *)ip + (off & 0xffff));
	e = event_flow(t);
	if (!e)
		return 0;
	for (i = 0; i < 4; i++) {
		e->source[i] = words[2 + i];
		e->destination[i] = words[6 + i];
	}
	if (t->path.family == 4) {
		e->source[0] = words[3];
		e->destination[0] = words[4];
	}
	e->source_port = bpf_ntohs(ports[0]);
	e->destination_port = bpf_ntohs(ports[0] >> 16);
	e->seq = t->path.flags & PF_UDP ? 0 : bpf_ntohl(ports[1]);
	e->ifindex = BPF_CORE_READ(device, ifindex);
	e->netns = BPF_CORE_READ(device, nd_net.net, ns.inum);
	bpf_probe_read_kernel(e->device, sizeof(e->device), device->name);
	t->dev = dev;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

/* The same where there is no IP header yet; tcp: its header, or 0. */
__noinline int event_socket(struct tracked_pkt *t, __u64 sk, __u64 tcp)
{
	struct sock *sock = (struct sock *)sk;
	struct event_flow *e;
	__u32 ports[2] = {};

	if (!t || !events_on)
		return 0;
	if (tcp)
		bpf_probe_read_kernel(ports, sizeof(ports), (void *)tcp);
	e = event_flow(t);
	if (!e)
		return 0;
	__builtin_memset(e->source, 0, sizeof(e->source));
	__builtin_memset(e->destination, 0, sizeof(e->destination));
	if (t->path.family == 4) {
		e->source[0] = BPF_CORE_READ(sock, __sk_common.skc_rcv_saddr);
		e->destination[0] = BPF_CORE_READ(sock, __sk_common.skc_daddr);
	} else {
		BPF_CORE_READ_INTO(&e->source, sock,
				   __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&e->destination, sock,
				   __sk_common.skc_v6_daddr);
	}
	e->source_port = BPF_CORE_READ(sock, __sk_common.skc_num);
	e->destination_port =
		bpf_ntohs(BPF_CORE_READ(sock, __sk_common.skc_dport));
	e->seq = bpf_ntohl(ports[1]);
	e->ifindex = 0;
	e->device[0] = 0;
	e->netns = BPF_CORE_READ(sock, __sk_common.skc_net.net, ns.inum);
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
