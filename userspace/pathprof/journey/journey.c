// SPDX-License-Identifier: GPL-2.0-only
/*
 * Computes from a packet's events the path it took, as the kernel's sums count
 * it, and which other packets carried the same data.
 */
#include <stdlib.h>
#include <string.h>
#include "journey/journey.h"

size_t event__size(const struct event *event, size_t room)
{
	size_t size = event->what == EV_FLOW ? sizeof(struct event_flow) :
		      event->what == EV_STATE ? sizeof(struct event_state) :
		      event->what == EV_BYTES ? sizeof(struct event_bytes) :
		      sizeof(*event);

	return size <= room ? size : 0;
}

/*
 * Repeats tracked_mark() and tracked_again() from their events: the time
 * before a new stage counts to the last one of the path; a packet that goes
 * back to a stage does so from the one it is in.
 */
static void replay(const struct journey *j, struct journey_sum *sum)
{
	struct path_key *k = &sum->path;
	const struct journey_event *e;
	unsigned int last = 0, at = 0;
	size_t i;

	for (i = 0; i < j->nevents; i++) {
		e = &j->events[i];
		if (k->n && !e->again)
			at = k->n - 1;
		if (k->n)
			sum->stage_ns[at] += e->took_ns;
		if (e->again) {
			for (at = 0; at + 1U < k->n; at++)
				if (k->stages[at] == e->stage)
					break;
		} else if ((k->n && last == e->stage) || k->n == PATH_STAGES) {
			continue;
		} else {
			at = k->n;
			k->stages[k->n++] = e->stage;
		}
		last = e->stage;
	}
}

void journey__sum(const struct journeys *all, const struct journey *j,
		  struct journey_sum *sum)
{
	struct path_key *k = &sum->path;
	size_t i;

	memset(sum, 0, sizeof(*sum));
	k->dir = j->dir;
	k->family = j->family;
	k->flags = j->flags;
	k->facts = j->facts;
	k->end = j->end;
	k->reason = j->reason;
	replay(j, sum);
	if (j->nevents)
		sum->total_ns = j->events[j->nevents - 1].ns;
	for (i = 0; i < k->n; i++) {
		if (all->profile.stages[k->stages[i]].kind == KIND_WAIT)
			sum->wait_ns += sum->stage_ns[i];
		else
			sum->work_ns += sum->stage_ns[i];
	}
	sum->own_ns = sum->total_ns - sum->work_ns - sum->wait_ns;
}

const struct profile_path *journey__path(const struct journeys *all,
					 const struct journey_sum *sum)
{
	const struct profile *p = &all->profile;
	struct path_key key;
	size_t i;

	for (i = 0; i < p->npaths; i++) {
		key = p->paths[i].key;
		/* Events do not hold where a packet was dropped. */
		key.location = sum->path.location;
		if (!memcmp(&key, &sum->path, sizeof(key)))
			return &p->paths[i];
	}
	return NULL;
}

static bool same_flow(const struct journey *a, const struct journey *b)
{
	const struct journey_flow *x = &a->flow, *y = &b->flow;

	return a->has_flow && b->has_flow && a->family == b->family &&
	       x->source_port == y->source_port &&
	       x->destination_port == y->destination_port &&
	       !strcmp(x->source, y->source) &&
	       !strcmp(x->destination, y->destination);
}

/* Does the data of `part` begin within that of `whole`? */
static bool within(const struct journey *part, const struct journey *whole)
{
	return part->bytes && part->seq - whole->seq < whole->bytes;
}

/* GRO holds a packet from its first event to its second. */
static bool merged_into(const struct journey *j, const struct journey *head)
{
	return j->end == END_MERGED && head->end != END_MERGED &&
	       j->dir == head->dir && j->flow.netns == head->flow.netns &&
	       j->flow.ifindex == head->flow.ifindex &&
	       head->flags & PF_GRO_MERGED && within(j, head) &&
	       head->start_ns <= j->start_ns && head->nevents > 1 &&
	       j->start_ns <= head->start_ns + head->events[1].ns;
}

static bool sent_as(const struct journey *rx, const struct journey *tx)
{
	return rx->dir == DIR_RX && tx->dir == DIR_TX &&
	       rx->end != END_MERGED && within(rx, tx) &&
	       tx->start_ns <= rx->start_ns;
}

enum journey_relation journey__relation(const struct journey *j,
					const struct journey *other)
{
	if (j == other || !same_flow(j, other) || j->flags & (PF_UDP | PF_ICMP))
		return REL_NONE;
	if (merged_into(j, other))
		return REL_MERGED_INTO;
	if (merged_into(other, j))
		return REL_MERGED_HERE;
	if (sent_as(j, other))
		return REL_SENT_AS;
	return sent_as(other, j) ? REL_RECEIVED_AS : REL_NONE;
}
