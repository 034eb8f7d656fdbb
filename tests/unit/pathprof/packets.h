/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the tests of pathprof's hooks share: its programs compiled for this
 * machine, two packets, and what became of them.
 */
#include "bpf.h"
/* A program cannot change it; the cases do. */
#define PATHPROF_CONFIG_BPF_H
#include "../../../bpf/pathprof.h"
static struct pathprof_config config = { .sample = 1 };
#include "../../../bpf/rx.bpf.h"
#include "../../../bpf/rx-tcp.bpf.h"
#include "../../../bpf/tx.bpf.h"

static struct cpu_work work;
static struct counts counted;
static struct path_value values[PATH_PATHS];

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	__u32 at = *(const __u32 *)key;

	if (map == &cpu_works)
		return &work;
	if (map == &counts)
		return &counted;
	return map == &path_values && at < PATH_PATHS ? &values[at] : NULL;
}

#define HELD	2	/* enum gro_result; others are compat.bpf.h's */
#define MERGED	0

static unsigned char headers[40] = {
	0x45, 0, 0, 40, [9] = IPPROTO_TCP, [32] = 0x50, [33] = 0x10,
};
static struct net_device dev;
/* Each where a packet may be: keys are addresses, aligned as in the kernel. */
static struct sk_buff first __attribute__((aligned(256)));
static struct sk_buff second __attribute__((aligned(256)));
static int cases, failures;

static void report(const char *name, int passed)
{
	printf("%sok %d %s\n", passed ? "" : "not ", ++cases, name);
	failures += !passed;
}

/* Packets that ended, in all and as merged. */
static __u64 ended(__u32 end)
{
	__u64 n = 0;
	int i;

	for (i = 0; i < PATH_PATHS; i++)
		if (path_entries[i].state == PATH_USED &&
		    (end == PATHPROF_END_MAX || path_entries[i].key.end == end))
			n += values[i].packets;
	return n;
}

/* The account: as many sampled as have ended or are followed. */
static int balanced(void)
{
	__u64 n = ended(PATHPROF_END_MAX);
	int i;

	for (i = 0; i < TRACKED_MAX; i++)
		n += tracked_keys[i] != 0;
	return counted.counters[CN_SAMPLED] == n;
}

static void begin(void)
{
	struct sk_buff *skbs[] = { &first, &second };
	int i;

	memset(&work, 0, sizeof(work));
	memset(&counted, 0, sizeof(counted));
	memset(values, 0, sizeof(values));
	memset(path_entries, 0, sizeof(path_entries));
	memset(tracked_keys, 0, sizeof(tracked_keys));
	tracked_count = 0;
	enabled = true;
	for (i = 0; i < 2; i++)
		*skbs[i] = (struct sk_buff){
			.dev = &dev, .data = headers, .head = headers,
			.len = sizeof(headers),
			.protocol = bpf_htons(ETH_P_IP),
		};
}

static int followed(struct sk_buff *skb)
{
	__u32 at = tracked_lock(address(skb));

	if (at != NOT_TRACKED)
		tracked_unlock(at, address(skb));
	return at != NOT_TRACKED;
}

/* A path of this end is there, and its last stage is this one. */
static int ended_at(__u32 end, __u32 stage)
{
	const struct path_key *k;
	int i;

	for (i = 0; i < PATH_PATHS; i++) {
		k = &path_entries[i].key;
		if (path_entries[i].state == PATH_USED && k->end == end &&
		    values[i].packets == 1 && k->stages[k->n - 1] == stage &&
		    values[i].stage_ns[k->n - 2])
			return 1;
	}
	return 0;
}
