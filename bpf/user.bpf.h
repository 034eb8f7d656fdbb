/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * --stage: functions that the user names are stages.  Userspace knows which of
 * their arguments is the packet, and loads one pair of hooks for each.
 */
#ifndef PATHPROF_USER_BPF_H
#define PATHPROF_USER_BPF_H

#include "compat.bpf.h"
#include "stack.bpf.h"
#include "tracked.bpf.h"

const volatile __u8 user_arguments[USER_STAGES] = {};

static __always_inline __u64 user_key(void *ctx, __u32 n)
{
	__u64 key = 0;

	bpf_get_func_arg(ctx, user_arguments[n], &key);
	return key;
}

/* The packet is in the function, and remains whose it was. */
__noinline int user_enter(__u64 key, __u32 n)
{
	struct tracked_pkt *t;
	__u32 at;

	/* The caller's is a constant, but the verifier walks this on its own. */
	if (n >= USER_STAGES)
		return 0;
	t = tracked_find(key, &at);
	if (!t)
		return 0;
	if (t->last != ST_USER + n) {
		t->owner = owner_of(t);
		t->callers[n] = t->last;
		tracked_mark(t, ST_USER + n, bpf_ktime_get_ns());
	}
	tracked_unlock(at, key);
	return 0;
}

/* Back in the stage that called it, unless the packet has gone on. */
__noinline int user_leave(__u64 key, __u32 n)
{
	struct tracked_pkt *t;
	__u32 at;

	if (n >= USER_STAGES)
		return 0;
	t = tracked_find(key, &at);
	if (!t)
		return 0;
	if (t->last == ST_USER + n)
		tracked_mark(t, t->callers[n], bpf_ktime_get_ns());
	tracked_unlock(at, key);
	return 0;
}

#endif
