/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The packets one CPU works on, of calls whose returns say nothing of them.
 */
#ifndef PATHPROF_CPU_BPF_H
#define PATHPROF_CPU_BPF_H

#include "compat.bpf.h"

struct cpu_work {
	__u64 gro_key;		/* handed to GRO */
	__u64 gro_ns;		/* its last_ns; 0 if it is not followed */
	__u64 rx_key;		/* in TCP; only if its returns are not hooked */
	__u64 rx_sk;
	__u64 icmp_key;		/* an echo reply whose socket is looked up */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_work);
} cpu_works SEC(".maps");

static __always_inline struct cpu_work *cpu_work(void)
{
	return bpf_map_lookup_elem(&cpu_works, &(__u32){ 0 });
}

#endif
