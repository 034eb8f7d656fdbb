/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * With --stages: a packet goes on in another buffer of the kernel, as when
 * fragments are put together or its headers need more room.  Its entry moves
 * along; nothing here ends a path that goes on.
 */
#ifndef PATHPROF_IDENTITY_BPF_H
#define PATHPROF_IDENTITY_BPF_H

#include "compat.bpf.h"
#include "detail.bpf.h"
#include "stack.bpf.h"
#include "tracked.bpf.h"

/* From the buffer `from` to `to`; 0 or an error: there is no other. */
__noinline int stack_moves(__u64 from, __u64 to)
{
	struct tracked_pkt *was, *t;
	__u32 at, next;

	if (!to || to >= (__u64)-4095 || to == from)
		return 0;
	was = tracked_find(from, &at);
	if (!was)
		return 0;
	stack_leftover(to);
	/* Without room the packet is counted as lost. */
	next = tracked_new(to);
	if (next != NOT_TRACKED) {
		t = tracked_at(next);
		__builtin_memcpy(t, was, sizeof(*t));
		if (groups_on || state_on)
			__builtin_memcpy(detail_of(t), detail_of(was),
					 sizeof(struct packet_detail));
		tracked_unlock(next, to);
	} else if (!was->path.dir) {
		count(CN_SAMPLED);
	}
	tracked_release(at);
	return 0;
}

#endif
