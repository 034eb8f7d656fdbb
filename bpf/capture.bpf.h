/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The first bytes of followed packets as events, for --capture.  Without it
 * `capture` is a constant 0, and the verifier removes what depends on it.
 */
#ifndef PATHPROF_CAPTURE_BPF_H
#define PATHPROF_CAPTURE_BPF_H

#include "compat.bpf.h"
#include "event.bpf.h"

const volatile __u32 capture = 0;	/* bytes, CAPTURE_MAX at most */

/* Once for each packet; linear bytes from the IP header at `ip` on can be read. */
__noinline int capture_bytes(struct tracked_pkt *t, __u64 ip, __u32 linear,
			     __u32 length)
{
	struct event_bytes *e;
	__u32 size = capture;

	if (!t || !events_on || !capture || t->captured)
		return 0;
	t->captured = 1;
	e = bpf_ringbuf_reserve(&event_ring, sizeof(*e), 0);
	if (!e) {
		__sync_fetch_and_add(&events_lost, 1);
		t->events++;
		return 0;
	}
	event_fill(&e->event, t, EV_BYTES, t->last_ns);
	t->events++;
	if (size > linear)
		size = linear;
	asm volatile("" : "+r"(size));
	if (size > CAPTURE_MAX)
		size = CAPTURE_MAX;
	e->length = length;
	e->captured = size;
	__builtin_memset(e->data, 0, sizeof(e->data));
	if (size && bpf_probe_read_kernel(e->data, size, (void *)ip))
		e->captured = 0;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
