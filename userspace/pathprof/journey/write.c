// SPDX-License-Identifier: GPL-2.0-only
/*
 * The one writer of events files: the recording's profile on the first line,
 * then a line for each packet.  Raw events of many packets come mixed; in the
 * ring those of one are in order.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "base/output-file.h"
#include "journey/journey.h"

struct writer {
	const char *raw;
	size_t bytes;
	const struct profile *p;
	uint64_t start_ns, lost;
	size_t *first;		/* by number: where in `order` it begins */
	size_t *order;		/* places in raw, packet after packet */
	uint32_t numbers;	/* the highest, and one */
	size_t nevents, npackets;	/* of what is written */
};

static const struct event *event_at(const struct writer *w, size_t at)
{
	return (const void *)(w->raw + at);
}

static size_t events_of(const struct writer *w, uint32_t number)
{
	return w->first[number + 1] - w->first[number];
}

/* Packets that a filter rejected after their first events are left out. */
static bool disowned(const struct writer *w, uint32_t number)
{
	return event_at(w, w->order[w->first[number + 1] - 1])->what ==
	       EV_DISOWN;
}

static int sort_events(struct writer *w)
{
	const struct event *e;
	uint32_t number;
	size_t at, step, i;

	for (at = 0; at < w->bytes; at += step) {
		e = event_at(w, at);
		step = event__size(e, w->bytes - at);
		if (!step)
			return -EINVAL;
		w->nevents++;
		if (e->number >= w->numbers)
			w->numbers = e->number + 1;
	}
	w->first = calloc(w->numbers + 2UL, sizeof(*w->first));
	w->order = calloc(w->nevents + 1, sizeof(*w->order));
	if (!w->first || !w->order)
		return -ENOMEM;
	/* How many has each, then where each begins, then fill in. */
	for (at = 0; at < w->bytes; at += event__size(e, w->bytes - at)) {
		e = event_at(w, at);
		w->first[e->number + 2]++;
	}
	for (i = 2; i < w->numbers + 2UL; i++)
		w->first[i] += w->first[i - 1];
	for (at = 0; at < w->bytes; at += event__size(e, w->bytes - at)) {
		e = event_at(w, at);
		w->order[w->first[e->number + 1]++] = at;
	}
	for (number = 1; number < w->numbers; number++) {
		if (!events_of(w, number))
			continue;
		if (disowned(w, number))
			w->nevents -= events_of(w, number);
		else
			w->npackets++;
	}
	return 0;
}

static void put_words(FILE *f, const char *key, uint32_t bits,
		      const char *(*name)(unsigned int))
{
	const char *comma = "";
	unsigned int bit;

	fprintf(f, ",\"%s\":[", key);
	for (bit = 0; bit < 32; bit++) {
		if (!(bits >> bit & 1) || !name(bit))
			continue;
		fprintf(f, "%s\"%s\"", comma, name(bit));
		comma = ",";
	}
	putc(']', f);
}

static void put_flow(FILE *f, const struct event_flow *e)
{
	int family = e->event.family == 6 ? AF_INET6 : AF_INET;
	char from[INET6_ADDRSTRLEN] = "", to[INET6_ADDRSTRLEN] = "";

	inet_ntop(family, e->source, from, sizeof(from));
	inet_ntop(family, e->destination, to, sizeof(to));
	fprintf(f, ",\"source\":\"%s\",\"source_port\":%u,"
		"\"destination\":\"%s\",\"destination_port\":%u,\"seq\":%u,"
		"\"ifindex\":%u,\"netns\":%u", from, e->source_port, to,
		e->destination_port, e->seq, e->ifindex, e->netns);
}

static void put_state(FILE *f, const struct event_state *e)
{
	int i;

	fprintf(f, ",\"state\":{");
	for (i = 0; i < STATE_MAX; i++)
		fprintf(f, "%s\"%s\":%u", i ? "," : "", state_name(i),
			e->values[i]);
	putc('}', f);
}

static void put_capture(FILE *f, const struct event_bytes *e)
{
	uint32_t i;

	fprintf(f, ",\"length\":%u,\"captured\":\"", e->length);
	for (i = 0; i < e->captured && i < CAPTURE_MAX; i++)
		fprintf(f, "%02x", e->data[i]);
	putc('"', f);
}

/* Where a packet is from here on, and its addresses there. */
static void put_place(FILE *f, const struct event_flow *e)
{
	char device[sizeof(e->device) * 2], *out = device;
	size_t i;

	/* Names of devices are nearly free text. */
	for (i = 0; i < sizeof(e->device) && e->device[i]; i++) {
		if (e->device[i] == '"' || e->device[i] == '\\')
			*out++ = '\\';
		*out++ = e->device[i] < ' ' || e->device[i] > '~' ? '?' :
			 e->device[i];
	}
	*out = 0;
	fprintf(f, ",\"device\":\"%s\"", device);
	put_flow(f, e);
}

/* Flags and facts found before an event, and those it adds. */
struct step {
	uint64_t first_ns, last_ns;
	uint32_t flags, facts;
	uint16_t index;
	const char *comma;
};

/* flow: the event of the addresses if it is the next, with what they told. */
static void put_event(FILE *f, const struct event *e, const struct event *flow,
		      struct step *s)
{
	uint32_t flags = e->flags | (flow ? flow->flags : 0);
	uint32_t facts = e->facts | (flow ? flow->facts : 0);
	uint16_t lost = e->index - s->index;

	fprintf(f, "%s{\"stage\":%u,\"ns\":%llu,\"took_ns\":%llu,\"cpu\":%u",
		s->comma, e->stage,
		(unsigned long long)(e->ns - s->first_ns),
		(unsigned long long)(e->ns - e->from), e->cpu);
	if (e->what == EV_AGAIN)
		fprintf(f, ",\"again\":true");
	if (lost)
		fprintf(f, ",\"lost\":%u", lost);
	if (flags & ~s->flags)
		put_words(f, "flags", flags & ~s->flags, flag_name);
	if (facts & ~s->facts)
		put_words(f, "facts", facts & ~s->facts, fact_name);
	if (flow && ((const struct event_flow *)flow)->device[0])
		put_place(f, (const struct event_flow *)flow);
	putc('}', f);
	s->flags |= flags;
	s->facts |= facts;
	s->comma = ",";
}

static void put_packet(FILE *f, const struct writer *w, const size_t *order,
		       size_t n)
{
	const struct event *e = event_at(w, order[0]), *last, *next;
	struct step s = { .first_ns = e->ns, .comma = "" };
	uint32_t lost = 0;
	size_t i;

	last = event_at(w, order[n - 1]);
	for (i = 0; i < n; i++) {
		e = event_at(w, order[i]);
		lost += (uint16_t)(e->index - s.index);
		s.index = e->index + 1;
	}
	fprintf(f, "{\"packet\":%u,\"direction\":\"%s\",\"family\":%u,"
		"\"start_ns\":%lld", e->number, dir_name(e->dir), e->family,
		(long long)(s.first_ns - w->start_ns));
	for (i = 0; i < n && event_at(w, order[i])->what != EV_FLOW; i++)
		;
	if (i < n)
		put_flow(f, (const void *)(w->raw + order[i]));
	for (i = 0; i < n; i++)
		if (event_at(w, order[i])->what == EV_STATE)
			break;
	if (i < n)
		put_state(f, (const void *)(w->raw + order[i]));
	for (i = 0; i < n; i++)
		if (event_at(w, order[i])->what == EV_BYTES)
			break;
	/* A GRO skb that became a packet of its own has them twice. */
	if (i < n)
		put_capture(f, (const void *)(w->raw + order[i]));
	fprintf(f, ",\"bytes\":%u,\"segments\":%u,\"lost\":%u,\"end\":",
		last->bytes, last->segments, lost);
	if (last->what == EV_END)
		fprintf(f, "\"%s\",\"reason\":%u", end_word(last->end),
			last->reason);
	else
		fprintf(f, "null,\"reason\":0");
	put_words(f, "flags", last->flags, flag_name);
	put_words(f, "facts", last->facts, fact_name);
	fprintf(f, ",\"events\":[");
	s.index = 0;
	for (i = 0; i < n; i++) {
		e = event_at(w, order[i]);
		next = i + 1 < n ? event_at(w, order[i + 1]) : NULL;
		if (e->what == EV_STAGE || e->what == EV_AGAIN)
			put_event(f, e, next && next->what == EV_FLOW ? next :
				  NULL, &s);
		s.index = e->index + 1;
	}
	fprintf(f, "]}\n");
}

static int fill(FILE *f, void *arg)
{
	struct writer *w = arg;
	uint32_t number;
	json_t *head;
	int rc;

	head = json_pack("{s:s s:i s:I s:I s:I s:o}", "format", EVENTS_FORMAT,
			 "version", EVENTS_VERSION,
			 "packets", (json_int_t)w->npackets,
			 "events", (json_int_t)w->nevents,
			 "lost", (json_int_t)w->lost,
			 "profile", profile__to_json(w->p));
	rc = !head || json_dumpf(head, f, JSON_COMPACT);
	json_decref(head);
	putc('\n', f);
	for (number = 1; number < w->numbers && !rc; number++)
		if (events_of(w, number) && !disowned(w, number))
			put_packet(f, w, w->order + w->first[number],
				   events_of(w, number));
	return rc;
}

int journeys__write(const void *raw, size_t bytes, const struct profile *p,
		    uint64_t start_ns, uint64_t lost, const char *path,
		    char *err, size_t len)
{
	struct writer w = { .raw = raw, .bytes = bytes, .p = p,
			    .start_ns = start_ns, .lost = lost };
	int rc = sort_events(&w);

	if (rc)
		snprintf(err, len, "cannot write %s: %s", path, strerror(-rc));
	else
		rc = output_file__write(path, fill, &w, err, len);
	free(w.first);
	free(w.order);
	return rc;
}
