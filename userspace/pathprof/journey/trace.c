// SPDX-License-Identifier: GPL-2.0-only
/*
 * Journeys as a trace.  Slices of one track must not overlap, and several
 * packets can be in a stage, or wait on a CPU, at once: a track gets as many
 * lanes as are needed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/tool.h"
#include "journey/trace.h"
#include "profile/label.h"
#include "profile/path-id.h"

#define LANES	64		/* of a track; further ones share the last */
#define RELATED	5000		/* packets; each pair is compared */

struct slice {
	const struct journey *j;
	uint64_t ns, took_ns;	/* ns: since the recording began */
	uint16_t track, cpu;
	uint8_t lane, stage;
	uint32_t step;		/* of the packet */
};

struct trace {
	const struct journeys *all;
	struct slice *slices;
	size_t n;
	const char *comma;
};

/* Text between quotes: nothing that JSON or a terminal gives meaning to. */
static void put_text(const char *text)
{
	char clean[256], *c;

	printable(text, clean, sizeof(clean));
	for (c = clean; *c; c++)
		putchar(*c == '"' || *c == '\\' ? '_' : *c);
}

static void next_event(struct trace *t)
{
	printf("%s\n{", t->comma);
	t->comma = ",";
}

static void put_ns(const char *key, uint64_t ns)
{
	printf(",\"%s\":%llu.%03llu", key, (unsigned long long)(ns / 1000),
	       (unsigned long long)(ns % 1000));
}

static int make_slices(struct trace *t, enum trace_tracks tracks)
{
	const struct journey *j;
	struct slice *s;
	size_t i, k, n = 0;

	for (i = 0; i < t->all->n; i++)
		n += t->all->list[i].nevents;
	t->slices = s = calloc(n + 1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	for (i = 0; i < t->all->n; i++) {
		j = &t->all->list[i];
		for (k = 0; k < j->nevents; k++, s++)
			*s = (struct slice){
				.j = j, .ns = j->start_ns + j->events[k].ns,
				.took_ns = k + 1 < j->nevents ?
					   j->events[k + 1].took_ns : 0,
				.track = tracks == TRACKS_CPU ?
					 j->events[k].cpu :
					 j->events[k].stage,
				.cpu = j->events[k].cpu,
				.stage = j->events[k].stage, .step = k,
			};
	}
	t->n = n;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;

	if (x->track != y->track)
		return x->track < y->track ? -1 : 1;
	if (x->ns != y->ns)
		return x->ns < y->ns ? -1 : 1;
	if (x->j->number != y->j->number)
		return x->j->number < y->j->number ? -1 : 1;
	return x->step < y->step ? -1 : x->step > y->step;
}

static int by_packet(const void *a, const void *b)
{
	const struct slice *x = a, *y = b;

	if (x->j->number != y->j->number)
		return x->j->number < y->j->number ? -1 : 1;
	return x->step < y->step ? -1 : x->step > y->step;
}

static unsigned int thread_of(const struct slice *s)
{
	return s->track * LANES + s->lane + 1;
}

static void name_track(struct trace *t, const struct slice *s,
		       enum trace_tracks tracks)
{
	const struct profile_stage *stage = &t->all->profile.stages[s->track];

	next_event(t);
	printf("\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%u,"
	       "\"args\":{\"name\":\"", thread_of(s));
	if (tracks == TRACKS_CPU) {
		printf("CPU %u", s->track);
	} else {
		printf("%s ", dir_name(stage->dir));
		put_text(stage->name);
	}
	if (s->lane)
		printf(" (%u)", s->lane + 1);
	printf("\"}}");
	/* In the order of the packet's way, not of names. */
	next_event(t);
	printf("\"name\":\"thread_sort_index\",\"ph\":\"M\",\"pid\":1,"
	       "\"tid\":%u,\"args\":{\"sort_index\":%u}}", thread_of(s),
	       tracks == TRACKS_CPU ? thread_of(s) :
	       (stage->dir == DIR_TX ? 0 : 1000000U) + stage->order * 1000U +
	       s->lane);
}

/* The first lane that is free when a slice begins. */
static void put_into_lanes(struct trace *t, enum trace_tracks tracks)
{
	uint64_t busy[LANES] = {};
	unsigned int used = 0, lane;
	struct slice *s;
	size_t i;

	qsort(t->slices, t->n, sizeof(*t->slices), by_time);
	for (i = 0; i < t->n; i++) {
		s = &t->slices[i];
		if (!i || s->track != s[-1].track) {
			memset(busy, 0, sizeof(busy));
			used = 0;
		}
		for (lane = 0; lane < LANES - 1 && busy[lane] > s->ns; lane++)
			;
		s->lane = lane;
		busy[lane] = s->ns + s->took_ns;
		if (lane >= used) {
			used = lane + 1;
			name_track(t, s, tracks);
		}
	}
}

static void put_slice(struct trace *t, const struct slice *s)
{
	const struct journey_event *e = &s->j->events[s->step];
	const struct profile_stage *stage = &t->all->profile.stages[s->stage];
	const char *comma = "";
	unsigned int bit;

	next_event(t);
	printf("\"name\":\"");
	put_text(stage->name);
	printf("\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":%u",
	       kind_name(stage->kind), thread_of(s));
	put_ns("ts", s->ns);
	put_ns("dur", s->took_ns);
	printf(",\"args\":{\"packet\":%u,\"cpu\":%u,\"learned\":\"",
	       s->j->number, s->cpu);
	for (bit = 0; bit < 64; bit++) {
		const char *name = bit < 32 ?
			(e->flags >> bit & 1 ? flag_name(bit) : NULL) :
			(e->facts >> (bit - 32) & 1 ? fact_name(bit - 32) :
			 NULL);

		if (!name)
			continue;
		printf("%s%s", comma, name);
		comma = ", ";
	}
	printf("\"");
	if (!s->step) {
		const struct journey_flow *flow = &s->j->flow;
		struct profile_path path = {};
		struct journey_sum sum;
		char words[PATH_WORDS], id[PATH_ID];

		journey__sum(t->all, s->j, &sum);
		path.key = sum.path;
		path__words(&t->all->profile, &path, words, sizeof(words));
		printf(",\"path\":\"");
		put_text(words);
		printf("\",\"path_id\":\"%s\",\"flow\":\"%s:%u > %s:%u\"",
		       path__id(&t->all->profile, &sum.path, id),
		       flow->source, flow->source_port, flow->destination,
		       flow->destination_port);
	}
	printf("}}");
}

/* An end of an arrow, bound to the slice that is there. */
static void put_arrow(struct trace *t, const struct slice *s, const char *ph,
		      const char *name, uint64_t id)
{
	next_event(t);
	printf("\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"%s\",\"id\":%llu,"
	       "\"pid\":1,\"tid\":%u", name, name, ph, (unsigned long long)id,
	       thread_of(s));
	put_ns("ts", s->ns);
	printf("%s}", *ph == 'f' ? ",\"bp\":\"e\"" : "");
}

/* The first slice of a packet; slices are in the order of packets. */
static const struct slice *first_of(const struct trace *t,
				    const struct journey *j)
{
	struct slice key = { .j = j };

	return bsearch(&key, t->slices, t->n, sizeof(key), by_packet);
}

/* From the last slice of a sent packet to the first of it as received. */
static void put_relations(struct trace *t)
{
	const struct journeys *all = t->all;
	const struct slice *from, *to;
	uint64_t id = 1ULL << 32;
	size_t i, k;

	if (all->n > RELATED) {
		complain("journey: no arrows from sent to received packets: "
			 "more than %d packets", RELATED);
		return;
	}
	for (i = 0; i < all->n; i++)
		for (k = 0; k < all->n; k++) {
			if (journey__relation(&all->list[i], &all->list[k]) !=
			    REL_SENT_AS)
				continue;
			from = first_of(t, &all->list[k]);
			to = first_of(t, &all->list[i]);
			if (!from || !to)
				continue;
			from += all->list[k].nevents - 1;
			put_arrow(t, from, "s", "wire", ++id);
			put_arrow(t, to, "f", "wire", id);
		}
}

int journeys__trace(const struct journeys *all, enum trace_tracks tracks)
{
	struct trace t = { .all = all, .comma = "" };
	const struct slice *s;
	size_t i;

	if (make_slices(&t, tracks))
		return -ENOMEM;
	printf("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
	next_event(&t);
	printf("\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"args\":"
	       "{\"name\":\"%s\"}}",
	       tracks == TRACKS_CPU ? "packets by CPU" : "packets by stage");
	put_into_lanes(&t, tracks);
	qsort(t.slices, t.n, sizeof(*t.slices), by_packet);
	for (i = 0; i < t.n; i++) {
		s = &t.slices[i];
		put_slice(&t, s);
		if (s->j->nevents > 1)
			put_arrow(&t, s, !s->step ? "s" :
				  s->step + 1 == s->j->nevents ? "f" : "t",
				  "packet", s->j->number);
	}
	put_relations(&t);
	printf("\n]}\n");
	free(t.slices);
	return 0;
}
