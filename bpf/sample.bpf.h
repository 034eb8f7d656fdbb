/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which packets are sampled: 1 in N, by a countdown of random geometric gaps,
 * so that an unsampled packet costs one decrement.
 */
#ifndef PATHPROF_SAMPLE_BPF_H
#define PATHPROF_SAMPLE_BPF_H

#include "compat.bpf.h"
#include "config.bpf.h"

/*
 * Gaps between samples, one from each of GAPS equally likely parts of the
 * geometric distribution; picking one at random draws from it without the
 * logarithm that BPF lacks.
 */
const volatile __u32 gaps[GAPS] = {};
/* Set when every hook is attached, cleared before the first is detached. */
bool enabled;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} countdown SEC(".maps");

static __always_inline __u64 draw_gap(void)
{
	return gaps[bpf_get_prandom_u32() & (GAPS - 1)];
}

/* Is this packet sampled?  To be called once per packet. */
static __always_inline bool sample_due(__u8 dir)
{
	__u64 *left;

	if (!READ_ONCE(enabled) || (config.dir && config.dir != dir))
		return false;
	if (config.sample == 1)
		return true;
	left = bpf_map_lookup_elem(&countdown, &(__u32){ 0 });
	if (!left)
		return false;
	if (!*left)
		*left = draw_gap();
	if (--*left)
		return false;
	*left = draw_gap();
	return true;
}

/* Will the next packet on this CPU be sampled?  Guards early clock reads. */
static __always_inline bool sample_next(void)
{
	__u64 *left;

	if (!READ_ONCE(enabled))
		return false;
	if (config.sample == 1)
		return true;
	left = bpf_map_lookup_elem(&countdown, &(__u32){ 0 });
	return left && *left == 1;
}

#endif
