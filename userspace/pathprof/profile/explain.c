// SPDX-License-Identifier: GPL-2.0-only
/*
 * Why packets took one way and not the other.  A fact ranks higher the more
 * packets of the expensive way have it, and the fewer of the cheap way.  The
 * fact that prediction was off gives way to one that gives the reason.
 */
#include <stdlib.h>
#include <string.h>
#include "profile/explain.h"
#include "profile/stats.h"

enum { CHEAP, EXPENSIVE, NEITHER };

static bool is_rx(const struct path_key *k, uint32_t flags)
{
	return path_is_rx(k) && (k->flags & flags) == flags;
}

static int way_prediction(const struct path_key *k)
{
	if (k->flags & PF_FAST)
		return CHEAP;
	return k->flags & PF_SLOW ? EXPENSIVE : NEITHER;
}

static int way_data(const struct path_key *k)
{
	return is_rx(k, PF_EST | PF_DATA) ? way_prediction(k) : NEITHER;
}

static int way_ack(const struct path_key *k)
{
	return is_rx(k, PF_EST | PF_PURE_ACK) ? way_prediction(k) : NEITHER;
}

static int way_backlog(const struct path_key *k)
{
	if (!is_rx(k, PF_EST))
		return NEITHER;
	return k->flags & PF_BACKLOG ? EXPENSIVE : CHEAP;
}

static int way_gro(const struct path_key *k)
{
	if (!is_rx(k, PF_DATA))
		return NEITHER;
	/* It came as one: of a sender on this host, or of the hardware. */
	if (k->flags & PF_SUPER && !(k->flags & PF_GRO_MERGED))
		return NEITHER;
	return k->end == END_MERGED || k->flags & PF_GRO_MERGED ? CHEAP :
								  EXPENSIVE;
}

static int way_demux(const struct path_key *k)
{
	if (!is_rx(k, PF_EST))
		return NEITHER;
	return k->facts & FACT_DEMUX_OFF ? EXPENSIVE : CHEAP;
}

static int way_ack_sent(const struct path_key *k)
{
	if (!is_rx(k, PF_EST | PF_DATA))
		return NEITHER;
	return k->facts & FACT_ACK_NOW ? EXPENSIVE : CHEAP;
}

static bool is_tx_data(const struct path_key *k)
{
	return k->dir == DIR_TX && k->flags & PF_DATA;
}

#define HELD (FACT_HELD_RWND | FACT_HELD_CWND | FACT_HELD_NAGLE | \
	      FACT_HELD_TSO | FACT_HELD_TSQ)

static int way_hold(const struct path_key *k)
{
	if (!is_tx_data(k))
		return NEITHER;
	return k->facts & HELD ? EXPENSIVE : CHEAP;
}

static int way_qdisc(const struct path_key *k)
{
	if (k->dir != DIR_TX)
		return NEITHER;
	return k->facts & FACT_QUEUED ? EXPENSIVE : CHEAP;
}

static int way_split(const struct path_key *k)
{
	if (k->dir != DIR_TX || !(k->flags & PF_SUPER))
		return NEITHER;
	return k->facts & (FACT_SPLIT | FACT_TSO_OFF) ? EXPENSIVE : CHEAP;
}

static int way_retransmit(const struct path_key *k)
{
	if (!is_tx_data(k))
		return NEITHER;
	return k->flags & PF_RETRANS ? EXPENSIVE : CHEAP;
}

static const struct {
	const char *name, *facts, *title, *cheap, *expensive;
	int (*way)(const struct path_key *k);
} branches[] = {
	{ "prediction of data", "prediction",
	  "Header prediction of received data", "fast path", "slow path",
	  way_data },
	{ "prediction of acks", "prediction",
	  "Header prediction of received ACKs", "fast path", "slow path",
	  way_ack },
	{ "backlog", "backlog", "Where TCP processed received packets",
	  "softirq", "backlog", way_backlog },
	{ "gro", "gro", "Received data and GRO", "merged", "alone", way_gro },
	{ "demux", "demux", "Early demux", "on", "off", way_demux },
	{ "ack", "ack", "ACK of received data", "later", "at once",
	  way_ack_sent },
	{ "hold", "hold", "Sending data", "at once", "held back", way_hold },
	{ "qdisc", "qdisc", "Queueing before the driver", "none", "queued",
	  way_qdisc },
	{ "split", "split", "Segmentation of sent GSO skbs", "device",
	  "software", way_split },
	{ "retransmit", "none", "Sent data", "first time", "again",
	  way_retransmit },
};

#define NBRANCHES (sizeof(branches) / sizeof(*branches))

/*
 * Facts of a packet.  A general fact counts only if no specific one gives the
 * reason: prediction is off because of something, and a packet out of order is
 * more than unexpected.  A full receive buffer closes the window, and the data
 * that it refuses leaves a hole before the next packet.
 */
uint32_t explain__facts(const struct path_key *k)
{
	const uint32_t why = FACT_PRED_OOO | FACT_PRED_RCVBUF |
			     FACT_PRED_URGENT | FACT_PRED_ZERO_WINDOW |
			     FACT_PRED_MPTCP | FACT_PRED_SYN_FIN;
	uint32_t facts = k->facts;

	if (facts & FACT_PRED_RCVBUF) {
		facts &= ~(FACT_PRED_ZERO_WINDOW | FACT_PRED_SEQ);
	} else if (k->flags & PF_OOO) {
		facts |= FACT_PRED_OOO;
		facts &= ~FACT_PRED_SEQ;
	}
	if (facts & why)
		facts &= ~(FACT_PRED_OFF | FACT_PRED_FLAGS);
	return facts;
}

static int by_score(const void *a, const void *b)
{
	const struct branch_fact *x = a, *y = b;

	if (x->score != y->score)
		return x->score < y->score ? 1 : -1;
	return x->bit < y->bit ? -1 : x->bit > y->bit;
}

static void add_path(struct branch *b, const char *group, int way,
		     const struct profile_path *path)
{
	uint32_t facts = explain__facts(&path->key), bit;
	size_t i;

	path__add(&b->sum[way], &path->sum);
	for (bit = 0; bit < 32; bit++) {
		if (!(facts >> bit & 1) || !fact_name(bit) ||
		    strcmp(fact_branch(bit), group))
			continue;
		for (i = 0; i < b->nfacts && b->facts[i].bit != bit; i++)
			;
		if (i == b->nfacts)
			b->facts[b->nfacts++].bit = bit;
		b->facts[i].with[way] += path->sum.packets;
	}
}

static void rank(struct branch *b)
{
	double n[WAYS] = { b->sum[CHEAP].packets, b->sum[EXPENSIVE].packets };
	struct branch_fact *f;
	size_t i;

	for (i = 0; i < b->nfacts; i++) {
		f = &b->facts[i];
		f->score = n[EXPENSIVE] ? f->with[EXPENSIVE] / n[EXPENSIVE] : 0;
		f->score -= n[CHEAP] ? f->with[CHEAP] / n[CHEAP] : 0;
	}
	qsort(b->facts, b->nfacts, sizeof(*b->facts), by_score);
}

struct branch *explain(const struct profile *p, size_t *n)
{
	struct branch *out = calloc(NBRANCHES, sizeof(*out)), *b = out;
	size_t i, j;
	int way;

	for (i = 0; out && i < NBRANCHES; i++) {
		b->name = branches[i].name;
		b->title = branches[i].title;
		b->ways[CHEAP] = branches[i].cheap;
		b->ways[EXPENSIVE] = branches[i].expensive;
		for (j = 0; j < p->npaths; j++) {
			way = branches[i].way(&p->paths[j].key);
			if (way != NEITHER)
				add_path(b, branches[i].facts, way,
					 &p->paths[j]);
		}
		rank(b);
		if (b->sum[CHEAP].packets + b->sum[EXPENSIVE].packets)
			b++;
		else
			memset(b, 0, sizeof(*b));
	}
	*n = b - out;
	return out;
}
