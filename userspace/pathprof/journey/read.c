// SPDX-License-Identifier: GPL-2.0-only
/*
 * The one reader of events files (Documentation/reference/events-format.rst).
 * As the reader of profiles it trusts nothing; what is wrong is named by its
 * line.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/reader.h"
#include "journey/journey.h"

#define PACKETS_MAX	(1 << 28)
#define EVENTS_MAX	(1 << 20)	/* of one packet */

/* Digits, dots and colons, so that it can be shown. */
static void read_address(struct reader *r, const json_t *o, const char *key,
			 char *out, size_t size)
{
	reader__text(r, o, key, out, size);
	if (out[strspn(out, "0123456789abcdef.:")])
		reader__refuse(r, "is no address", key);
}

static void read_flow(struct reader *r, const json_t *o,
		      struct journey_flow *flow)
{
	read_address(r, o, "source", flow->source, sizeof(flow->source));
	read_address(r, o, "destination", flow->destination,
		     sizeof(flow->destination));
	flow->source_port = reader__number(r, o, "source_port", UINT16_MAX);
	flow->destination_port = reader__number(r, o, "destination_port",
						UINT16_MAX);
	flow->ifindex = reader__number(r, o, "ifindex", INT32_MAX);
	flow->netns = reader__number(r, o, "netns", UINT32_MAX);
}

static void read_place(struct reader *r, const json_t *o,
		       struct journey_event *e)
{
	if (!json_object_get(o, "device"))
		return;
	e->place = calloc(1, sizeof(*e->place));
	if (!e->place) {
		reader__refuse(r, "does not fit into memory", "device");
		return;
	}
	reader__text(r, o, "device", e->place->device,
		     sizeof(e->place->device));
	read_flow(r, o, &e->place->flow);
}

static void read_event(struct reader *r, const json_t *o,
		       const struct profile *p, struct journey_event *e)
{
	uint64_t id = reader__number(r, o, "stage", PATHPROF_STAGE_MAX - 1);

	if (!p->stages[id].known)
		reader__refuse(r, "names no stage of this file", "stage");
	e->stage = id;
	e->ns = reader__number(r, o, "ns", INT64_MAX);
	e->took_ns = reader__number(r, o, "took_ns", INT64_MAX);
	e->cpu = reader__number(r, o, "cpu", UINT16_MAX);
	e->again = json_is_true(json_object_get(o, "again"));
	if (json_object_get(o, "lost"))
		e->lost = reader__number(r, o, "lost", UINT16_MAX);
	if (json_object_get(o, "flags"))
		reader__words(r, o, "flags", flag_name, &e->flags);
	if (json_object_get(o, "facts"))
		reader__words(r, o, "facts", fact_name, &e->facts);
	read_place(r, o, e);
}

static int digit(char c)
{
	const char *digits = "0123456789abcdef", *at = strchr(digits, c);

	return c && at ? at - digits : -1;
}

static void read_capture(struct reader *r, const json_t *o, struct journey *j)
{
	const char *text = json_string_value(json_object_get(o, "captured"));
	size_t i;

	if (!json_object_get(o, "captured"))
		return;
	if (!text || strlen(text) > 2 * CAPTURE_MAX || strlen(text) % 2 ||
	    strspn(text, "0123456789abcdef") != strlen(text)) {
		reader__refuse(r, "is no list of bytes", "captured");
		return;
	}
	j->length = reader__number(r, o, "length", UINT32_MAX);
	j->captured = malloc(strlen(text) / 2 + 1);
	if (!j->captured) {
		reader__refuse(r, "does not fit into memory", "captured");
		return;
	}
	j->ncaptured = strlen(text) / 2;
	for (i = 0; i < j->ncaptured; i++)
		j->captured[i] = digit(text[2 * i]) << 4 |
				 digit(text[2 * i + 1]);
}

static void read_state(struct reader *r, const json_t *o, struct journey *j)
{
	const json_t *state = json_object_get(o, "state");
	int i;

	j->has_state = state;
	for (i = 0; state && i < STATE_MAX; i++)
		if (json_object_get(state, state_name(i)))
			j->state[i] = reader__number(r, state, state_name(i),
						     UINT32_MAX);
}

static void read_packet(struct reader *r, const json_t *o,
			const struct profile *p, struct journey *j)
{
	const json_t *events;
	size_t i;

	j->number = reader__number(r, o, "packet", UINT32_MAX);
	j->dir = reader__word(r, o, "direction", 3, dir_name);
	j->family = reader__number(r, o, "family", 6);
	j->start_ns = reader__number(r, o, "start_ns", INT64_MAX);
	j->bytes = reader__number(r, o, "bytes", UINT32_MAX);
	j->segments = reader__number(r, o, "segments", UINT16_MAX);
	j->lost = reader__number(r, o, "lost", UINT32_MAX);
	j->reason = reader__number(r, o, "reason", UINT32_MAX);
	j->ended = !json_is_null(json_object_get(o, "end"));
	if (j->ended)
		j->end = reader__word(r, o, "end", PATHPROF_END_MAX, end_word);
	reader__words(r, o, "flags", flag_name, &j->flags);
	reader__words(r, o, "facts", fact_name, &j->facts);
	if (json_object_get(o, "source")) {
		j->has_flow = true;
		read_flow(r, o, &j->flow);
		j->seq = reader__number(r, o, "seq", UINT32_MAX);
	}
	read_capture(r, o, j);
	read_state(r, o, j);
	events = reader__array(r, o, "events", EVENTS_MAX);
	if (r->bad || !json_array_size(events))
		return;
	j->events = calloc(json_array_size(events), sizeof(*j->events));
	if (!j->events) {
		reader__refuse(r, "does not fit into memory", "events");
		return;
	}
	j->nevents = json_array_size(events);
	for (i = 0; i < j->nevents; i++)
		read_event(r, json_array_get(events, i), p, &j->events[i]);
	for (i = 1; i < j->nevents; i++)
		if (j->events[i].ns < j->events[i - 1].ns ||
		    j->events[i].took_ns >
		    j->events[i].ns - j->events[i - 1].ns)
			reader__refuse(r, "goes back in time", "ns");
}

static int refuse(char *err, size_t len, const char *why)
{
	snprintf(err, len, "%s", why);
	return -EINVAL;
}

/* The first line: what file it is, how many follow, the profile. */
static int read_head(struct journeys *all, const json_t *head, char *err,
		     size_t len)
{
	const char *format = json_string_value(json_object_get(head,
							       "format"));
	struct reader r = { .err = err, .len = len };
	uint64_t version;

	if (!format || strcmp(format, EVENTS_FORMAT))
		return refuse(err, len, "not an events file of pathprof record "
			      "--events (its \"format\" is not \""
			      EVENTS_FORMAT "\")");
	version = reader__number(&r, head, "version", INT32_MAX);
	if (!r.bad && version != EVENTS_VERSION)
		return refuse(err, len, "written by another pathprof: this one "
			      "reads format version 1");
	all->n = reader__number(&r, head, "packets", PACKETS_MAX);
	all->nevents = reader__number(&r, head, "events", INT64_MAX);
	all->lost = reader__number(&r, head, "lost", INT64_MAX);
	if (r.bad)
		return -EINVAL;
	return profile__from_json(&all->profile,
				  json_object_get(head, "profile"), err, len);
}

static int by_number(const void *a, const void *b)
{
	const struct journey *x = a, *y = b;

	return x->number < y->number ? -1 : x->number > y->number;
}

static bool another_line(FILE *f)
{
	int c = getc(f);

	return c != EOF && ungetc(c, f) != EOF;
}

static int read_lines(struct journeys *all, FILE *f, char *err, size_t len)
{
	struct reader r = { .err = err, .len = len };
	size_t have = 0, want, at;
	json_t *o;
	int rc, wrong;

	o = reader__json(f, true, &wrong);
	rc = o ? read_head(all, o, err, len) :
	     refuse(err, len, wrong < 0 ? READER_TOO_LARGE :
		    "not an events file, or cut short");
	json_decref(o);
	want = rc ? 0 : all->n;
	all->n = 0;
	while (!rc && another_line(f)) {
		at = all->n;
		if (at == want)
			rc = refuse(err, len, "damaged: more packets than its "
				    "first line gives");
		/* Grow with what is there, not with what is said. */
		if (!rc && at == have) {
			have = have ? have * 2 : 64;
			struct journey *grown = reallocarray(all->list, have,
							sizeof(*grown));
			if (!grown)
				rc = refuse(err, len, "it does not fit into "
					    "memory");
			else
				all->list = grown;
		}
		if (rc)
			break;
		memset(&all->list[at], 0, sizeof(all->list[at]));
		o = reader__json(f, true, &wrong);
		if (o)
			read_packet(&r, o, &all->profile, &all->list[at]);
		else
			reader__refuse(&r, wrong < 0 ? "is " READER_TOO_LARGE :
				       "is not JSON, or cut short", "packet");
		json_decref(o);
		all->n++;
		if (r.bad) {
			at = strlen(err);
			snprintf(err + at, len - at, " (line %zu)",
				 all->n + 1);
			rc = -EINVAL;
		}
	}
	if (!rc && all->n < want)
		rc = refuse(err, len, "cut short: fewer packets than its "
			    "first line gives");
	if (!rc && all->n)
		qsort(all->list, all->n, sizeof(*all->list), by_number);
	for (at = 1; !rc && at < all->n; at++)
		if (all->list[at].number == all->list[at - 1].number)
			rc = refuse(err, len, "damaged: two packets have one "
				    "number");
	return rc;
}

int journeys__read(struct journeys *all, const char *path, char *err,
		   size_t len)
{
	FILE *f = fopen(path, "re");
	char why[256] = "";
	int rc;

	memset(all, 0, sizeof(*all));
	if (f) {
		rc = read_lines(all, f, why, sizeof(why));
		if (rc && ferror(f))
			refuse(why, sizeof(why), strerror(EISDIR));
		fclose(f);
	} else {
		rc = refuse(why, sizeof(why), strerror(errno));
	}
	if (rc) {
		snprintf(err, len, "cannot read %s: %s", path, why);
		journeys__free(all);
		return rc;
	}
	return 0;
}

void journeys__free(struct journeys *all)
{
	size_t i, k;

	for (i = 0; i < all->n; i++) {
		for (k = 0; k < all->list[i].nevents; k++)
			free(all->list[i].events[k].place);
		free(all->list[i].events);
		free(all->list[i].captured);
	}
	free(all->list);
	profile__free(&all->profile);
	memset(all, 0, sizeof(*all));
}
