/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Adds what the BPF programs have summed up to a profile.
 */
#ifndef PATHPROF_COLLECT_H
#define PATHPROF_COLLECT_H

#include <bpf/libbpf.h>
#include "kernel/drops.h"
#include "profile/profile.h"

/* Where the sums are. */
struct sums {
	const struct bpf_map *path_values, *counts, *stage_times;
	const struct bpf_map *path_states, *groups;	/* NULL: none kept */
	const struct path_entry *path_entries;
	const struct tracked_pkt *tracked_pkts;
	const __u64 *tracked_keys;
	const struct sock_work *socks;
	const struct drops *drops;
};

/* PATHPROF_COUNTER_MAX counters, added to. */
void sums__counts(const struct sums *s, uint64_t *counters);
int sums__paths(const struct sums *s, struct profile *p);
/* Groups and, if kept, the states of paths. */
int sums__groups(const struct sums *s, struct profile *p);
void sums__stages(const struct sums *s, struct profile *p);
/* How many have not arrived so far. */
void sums__followed(const struct sums *s, struct profile *p);
/* Packets that have not arrived; call it when nothing changes any more. */
int sums__tracked(const struct sums *s, struct profile *p);

#endif
