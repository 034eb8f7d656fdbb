// SPDX-License-Identifier: GPL-2.0-only
/*
 * How much of the time of stages is pathprof's own.  A stage lasts from a clock
 * read in one hook to one in the next.  In between lie what the one does
 * after its clock, the way back to the kernel, the way to the other, and what
 * that does before its clock.
 */
#include <string.h>
#include "record/probe.h"

/* The hook that reports a stage here; NULL if none is attached. */
static const struct profile_hook *hook_of(const struct profile *p,
					  unsigned int id)
{
	char list[sizeof(p->stages[0].hooks)], *word, *rest = list;
	size_t i;

	memcpy(list, p->stages[id].hooks, sizeof(list));
	while ((word = strsep(&rest, " ")))
		for (i = 0; i < p->nhooks; i++)
			if (p->hooks[i].state == HOOK_ATTACHED &&
			    !strcmp(p->hooks[i].name, word))
				return &p->hooks[i];
	return NULL;
}

/*
 * Half of the way to a hook's program and back.  Of a function's return it is
 * taken for that of its entry.
 */
static uint64_t way(const struct profile *p, unsigned int id)
{
	const struct profile_hook *hook = hook_of(p, id);

	if (!hook)
		return 0;
	return (strcmp(hook->type, "tp_btf") ? p->probe.function :
		p->probe.event) / 2;
}

/* A function whose return is hooked is entered at some cost, too: a quarter. */
static uint64_t entered(const struct profile *p, unsigned int id)
{
	const struct profile_hook *hook = hook_of(p, ST_RX_DONE);

	if ((id != ST_RX_EST && id != ST_RX_STATE) || !hook ||
	    strcmp(hook->type, "fexit"))
		return 0;
	return p->probe.function / 4;
}

/* Is the packet taken up here that TCP announced? */
static bool claims(const struct path_key *k, unsigned int at)
{
	return at && k->stages[at - 1] == ST_TX_TRANSMIT;
}

/* After the clock that begins a stage; some hooks read theirs last. */
static uint64_t after(const struct profile *p, const struct path_key *k,
		      unsigned int at, bool events)
{
	unsigned int id = k->stages[at];
	bool enters = id == ST_RX_NETIF || id == ST_RX_GRO;
	bool last = !at || id == ST_RX_EST || id == ST_TX_TRANSMIT ||
		    (enters && hook_of(p, ST_CROSS)) ||
		    (events && claims(k, at));

	return way(p, id) + (last ? p->probe.clock / 2 : p->probe.tail);
}

/* Before the clock that ends a stage. */
static uint64_t before(const struct profile *p, const struct path_key *k,
		       unsigned int at)
{
	unsigned int id = k->stages[at];

	return way(p, id) + entered(p, id) +
	       (claims(k, at) ? p->probe.claim : p->probe.head);
}

/*
 * The cause of a transmission has a clock for its first packet only; for others
 * it lasts no time.  Nothing is subtracted from it.
 */
static bool is_origin(const struct path_key *k, unsigned int at)
{
	return k->stages[at + 1] == ST_TX_TRANSMIT ||
	       k->stages[at + 1] == ST_TX_RETRANS;
}

void probe__fill(struct profile *p, bool events)
{
	struct profile_path *path;
	unsigned int at;
	uint64_t own;
	size_t i;

	for (i = 0; i < p->npaths; i++) {
		path = &p->paths[i];
		for (at = 0; at + 1 < path->key.n; at++) {
			if (is_origin(&path->key, at))
				continue;
			own = (after(p, &path->key, at, events) +
			       before(p, &path->key, at + 1)) *
			      path->sum.packets;
			if (own > path->sum.stage_ns[at])
				own = path->sum.stage_ns[at];
			path->probe_ns[at] = own;
		}
	}
}
