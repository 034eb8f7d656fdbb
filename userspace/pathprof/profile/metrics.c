// SPDX-License-Identifier: GPL-2.0-only
/*
 * The metrics of a profile.  Costs are work, not waiting: how long a packet
 * waits depends more on the load than on the code.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "profile/metrics.h"

/* A kind of packet: direction, flags it has; the kind it is a share of. */
static const struct kind {
	const char *name, *of;
	__u8 dir;
	__u32 flags;
	int bad;		/* of its share */
} kinds[] = {
	{ "rx", NULL, DIR_RX, 0, 0 },
	{ "rx.data", "rx", DIR_RX, PF_EST | PF_DATA, 0 },
	{ "rx.fast", "rx.data", DIR_RX, PF_EST | PF_DATA | PF_FAST, -1 },
	{ "rx.slow", "rx.data", DIR_RX, PF_EST | PF_DATA | PF_SLOW, 1 },
	{ "rx.ooo", "rx.data", DIR_RX, PF_EST | PF_DATA | PF_OOO, 1 },
	{ "rx.gro", "rx.data", DIR_RX, PF_DATA | PF_GRO_MERGED, -1 },
	{ "rx.ack", "rx", DIR_RX, PF_EST | PF_PURE_ACK, 0 },
	{ "rx.ack.fast", "rx.ack", DIR_RX, PF_EST | PF_PURE_ACK | PF_FAST,
	  -1 },
	{ "rx.ack.slow", "rx.ack", DIR_RX, PF_EST | PF_PURE_ACK | PF_SLOW,
	  1 },
	{ "rx.backlog", "rx", DIR_RX, PF_BACKLOG, 1 },
	{ "tx", NULL, DIR_TX, 0, 0 },
	{ "tx.data", "tx", DIR_TX, PF_DATA, 0 },
	{ "tx.ack", "tx", DIR_TX, PF_PURE_ACK, 0 },
	{ "tx.retransmit", "tx.data", DIR_TX, PF_DATA | PF_RETRANS, 1 },
};

#define NKINDS (sizeof(kinds) / sizeof(*kinds))
/*
 * Three of each kind, one of each stage, the drops of two directions, and the
 * unprofiled run.
 */
#define MOST (3 * NKINDS + 2 * PATHPROF_STAGE_MAX + 5)

struct sum {
	double packets, bytes, work_ns;
};

static bool is_kind(const struct path_key *key, const struct kind *k)
{
	bool same = k->dir == DIR_RX ? path_is_rx(key) : key->dir == k->dir;

	return same && (key->flags & k->flags) == k->flags;
}

static struct sum sum_of(const struct profile *p, const struct kind *k)
{
	struct sum sum = {};
	size_t i;

	for (i = 0; i < p->npaths; i++) {
		if (!is_kind(&p->paths[i].key, k))
			continue;
		sum.packets += p->paths[i].sum.packets;
		sum.bytes += p->paths[i].sum.bytes;
		sum.work_ns += p->paths[i].sum.work_ns;
	}
	return sum;
}

static const struct kind *find_kind(const char *name)
{
	size_t i;

	for (i = 0; i < NKINDS; i++)
		if (!strcmp(kinds[i].name, name))
			return &kinds[i];
	return NULL;
}

static void put(struct metric **m, enum metric_kind kind, double value,
		double packets, int bad, const char *name, const char *what)
{
	snprintf((*m)->name, sizeof((*m)->name), "%s.%s", name, what);
	(*m)->kind = kind;
	(*m)->value = value;
	(*m)->packets = packets;
	(*m)->bad = bad;
	(*m)++;
}

static void put_kind(struct metric **m, const struct profile *p,
		     const struct kind *k)
{
	struct sum sum = sum_of(p, k), all;

	if (k->of) {
		all = sum_of(p, find_kind(k->of));
		if (all.packets)
			put(m, METRIC_SHARE, sum.packets / all.packets,
			    all.packets, k->bad, k->name, "share");
	}
	if (!sum.packets)
		return;
	put(m, METRIC_COST, sum.work_ns / sum.packets, sum.packets, 1,
	    k->name, "cost");
	if (k->flags & PF_DATA && sum.bytes)
		put(m, METRIC_COST, sum.work_ns / sum.bytes, sum.packets, 1,
		    k->name, "byte");
}

/* Mean work at a stage of a packet that passes it. */
static void put_stage(struct metric **m, const struct profile *p,
		      unsigned int id, __u8 dir)
{
	const struct profile_path *path;
	double ns = 0, packets = 0;
	char name[40];
	size_t i, at;

	for (i = 0; i < p->npaths; i++) {
		path = &p->paths[i];
		if (path->key.dir != dir)
			continue;
		for (at = 0; at < path->key.n && at < PATH_STAGES; at++) {
			if (path->key.stages[at] != id)
				continue;
			ns += path->sum.stage_ns[at];
			packets += path->sum.packets;
		}
	}
	snprintf(name, sizeof(name), "%s.at", dir_name(dir));
	if (packets)
		put(m, METRIC_COST, ns / packets, packets, 1, name,
		    p->stages[id].name);
}

static void put_drops(struct metric **m, const struct profile *p, __u8 dir)
{
	double dropped = 0, all = 0;
	char name[40];
	size_t i;

	for (i = 0; i < p->npaths; i++) {
		if (p->paths[i].key.dir != dir)
			continue;
		all += p->paths[i].sum.packets;
		if (p->paths[i].key.end == END_DROPPED)
			dropped += p->paths[i].sum.packets;
	}
	snprintf(name, sizeof(name), "%s.drop", dir_name(dir));
	if (all)
		put(m, METRIC_SHARE, dropped / all, all, 1, name, "share");
}

struct metric *metrics(const struct profile *p, size_t *n)
{
	struct metric *first = calloc(MOST, sizeof(*first)), *m = first;
	unsigned int id;
	size_t i;

	if (!first)
		return NULL;
	for (i = 0; i < NKINDS; i++)
		put_kind(&m, p, &kinds[i]);
	for (id = 0; id < PATHPROF_STAGE_MAX; id++) {
		if (!p->stages[id].known || p->stages[id].kind != KIND_WORK)
			continue;
		put_stage(&m, p, id, DIR_RX);
		put_stage(&m, p, id, DIR_TX);
	}
	put_drops(&m, p, DIR_RX);
	put_drops(&m, p, DIR_TX);
	if (p->load_packets)
		put(&m, METRIC_COST, (double)p->load_ns / p->load_packets,
		    p->load_packets, 1, "load", "time");
	/* More but cheaper packets for the same data are no gain. */
	if (p->load_packets && p->load_bytes) {
		put(&m, METRIC_COST, (double)p->load_ns / p->load_bytes,
		    p->load_packets, 1, "load", "byte");
		put(&m, METRIC_COST, (double)p->load_packets / p->load_bytes,
		    p->load_packets, 1, "load", "packets");
	}
	*n = m - first;
	return first;
}
