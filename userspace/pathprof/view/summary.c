// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sums up a profile for a live view: rates, the share of the slow path with its
 * reasons, drops.
 */
#include <stdlib.h>
#include <string.h>
#include "profile/explain.h"
#include "view/summary.h"

static int by_packets(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? 1 : *x > *y ? -1 : 0;
}

static void find_reasons(const struct profile *p, struct summary *s)
{
	struct {
		uint64_t packets;
		unsigned int fact;
	} counts[32] = {};
	const struct path_key *k;
	unsigned int bit;
	uint32_t facts;
	size_t i;

	for (i = 0; i < p->npaths; i++) {
		k = &p->paths[i].key;
		if (!path_is_rx(k) || !(k->flags & PF_DATA) ||
		    !(k->flags & PF_EST))
			continue;
		if (k->flags & PF_FAST)
			s->fast += p->paths[i].sum.packets;
		if (!(k->flags & PF_SLOW))
			continue;
		s->slow += p->paths[i].sum.packets;
		facts = explain__facts(k);
		for (bit = 0; bit < 32; bit++)
			if (facts >> bit & 1 && fact_name(bit) &&
			    !strcmp(fact_branch(bit), "prediction"))
				counts[bit].packets += p->paths[i].sum.packets;
	}
	for (bit = 0; bit < 32; bit++)
		counts[bit].fact = bit;
	qsort(counts, 32, sizeof(counts[0]), by_packets);
	for (bit = 0; bit < 32 && counts[bit].packets; bit++) {
		s->reasons[bit].fact = counts[bit].fact;
		s->reasons[bit].packets = counts[bit].packets;
	}
	s->nreasons = bit;
}

void summary__make(const struct profile *p, struct summary *s)
{
	memset(s, 0, sizeof(*s));
	profile__totals(p, &s->totals);
	s->seconds = (p->budget_ppm ? p->open_ns : p->duration_ns) / 1e9;
	s->weight = p->sample ? p->sample : 1;
	if (s->seconds > 0) {
		s->packets = s->totals.packets * s->weight / s->seconds;
		s->bits = s->totals.bytes * 8.0 * s->weight / s->seconds;
	}
	find_reasons(p, s);
}

static int by_drops(const void *a, const void *b)
{
	const struct drop *x = a, *y = b;

	if (x->packets != y->packets)
		return x->packets < y->packets ? 1 : -1;
	return x->reason < y->reason ? -1 : x->reason > y->reason;
}

struct drop *summary__drops(const struct profile *p, size_t *n)
{
	struct drop *list = calloc(p->npaths + 1, sizeof(*list)), *d;
	const struct path_key *k;
	const char *where;
	uint8_t stage;
	size_t i;

	*n = 0;
	for (i = 0; list && i < p->npaths; i++) {
		k = &p->paths[i].key;
		if (k->end != END_DROPPED || !p->paths[i].sum.packets)
			continue;
		/* The last stage is the drop itself. */
		stage = k->n > 1 ? profile__stage(p, k, k->n - 2) - p->stages : 0;
		where = profile__location(p, k);
		for (d = list; d < list + *n; d++)
			if (d->dir == k->dir && d->stage == stage &&
			    d->reason == k->reason && !strcmp(d->where, where))
				break;
		if (d == list + *n)
			++*n;
		d->dir = k->dir;
		d->stage = stage;
		d->reason = k->reason;
		d->where = where;
		d->packets += p->paths[i].sum.packets;
	}
	if (list)
		qsort(list, *n, sizeof(*list), by_drops);
	return list;
}

const char *drop__place(const char *where, char *out, size_t len)
{
	const char *before = "", *rest = where;
	size_t at = 0, n;

	*out = 0;
	while (*rest && at < len) {
		n = strcspn(rest, " ");
		at += snprintf(out + at, len - at, "%s%.*s%s", before, (int)n,
			       rest, rest == where ? "()" : "");
		before = rest == where ? ", called by " : ", ";
		rest += n;
		rest += strspn(rest, " <");
	}
	return out;
}
