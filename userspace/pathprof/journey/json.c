// SPDX-License-Identifier: GPL-2.0-only
/* The same as JSON (Documentation/reference/pathprof-journey.1.rst). */
#include <jansson.h>
#include "base/tool.h"
#include "journey/view.h"
#include "profile/label.h"
#include "profile/path-id.h"

static json_t *state_json(const struct journey *j)
{
	json_t *o = j->has_state ? json_object() : NULL;
	int i;

	for (i = 0; o && i < STATE_MAX; i++)
		json_object_set_new(o, state_name(i), json_integer(j->state[i]));
	return o;
}

static const struct {
	enum journey_relation relation;
	const char *key;
} relations[] = {
	{ REL_MERGED_INTO, "merged_into" },
	{ REL_MERGED_HERE, "merged_here" },
	{ REL_SENT_AS, "sent_as" },
	{ REL_RECEIVED_AS, "received_as" },
};

#define NRELATIONS (sizeof(relations) / sizeof(*relations))

static json_t *words_json(uint32_t bits, const char *(*name)(unsigned int))
{
	json_t *list = json_array();
	unsigned int bit;

	for (bit = 0; bit < 32; bit++)
		if (bits >> bit & 1 && name(bit))
			json_array_append_new(list, json_string(name(bit)));
	return list;
}

static json_t *summary_json(const struct journeys *all,
			    const struct journey *j)
{
	const struct journey_flow *f = &j->flow;
	struct journey_sum sum;
	char words[PATH_WORDS], id[PATH_ID];

	journey__sum(all, j, &sum);
	journey__words(all, j, &sum, words, sizeof(words));
	return json_pack("{s:I s:s s:s s:s s:i s:s s:i s:I s:I s:I s:I s:I s:I s:I "
			 "s:I s:I s:I s:s? s:i s:o s:o s:I s:o*}",
			 "packet", (json_int_t)j->number, "path", words,
			 "path_id", path__id(&all->profile, &sum.path, id),
			 "source", f->source, "source_port", f->source_port,
			 "destination", f->destination, "destination_port",
			 f->destination_port, "seq", (json_int_t)j->seq,
			 "ifindex", (json_int_t)f->ifindex,
			 "netns", (json_int_t)f->netns,
			 "bytes", (json_int_t)j->bytes,
			 "segments", (json_int_t)j->segments,
			 "start_ns", (json_int_t)j->start_ns,
			 "total_ns", (json_int_t)sum.total_ns,
			 "work_ns", (json_int_t)sum.work_ns,
			 "wait_ns", (json_int_t)sum.wait_ns,
			 "own_ns", (json_int_t)sum.own_ns,
			 "end", j->ended ? end_word(j->end) : NULL,
			 "reason", j->reason,
			 "flags", words_json(j->flags, flag_name),
			 "facts", words_json(j->facts, fact_name),
			 "lost", (json_int_t)j->lost,
			 "state", state_json(j));
}

static json_t *place_json(const struct journey_place *place)
{
	const struct journey_flow *f = &place->flow;

	return json_pack("{s:s s:I s:I s:s s:i s:s s:i}",
			 "device", place->device,
			 "ifindex", (json_int_t)f->ifindex,
			 "netns", (json_int_t)f->netns,
			 "source", f->source,
			 "source_port", f->source_port,
			 "destination", f->destination,
			 "destination_port", f->destination_port);
}

static json_t *journey_json(const struct journeys *all,
			    const struct journey *j)
{
	json_t *o = summary_json(all, j), *list = json_array(), *event;
	const struct journey_event *e;
	size_t i, k;

	for (i = 0; i < j->nevents; i++) {
		e = &j->events[i];
		event = json_pack("{s:s s:s s:I s:i s:b s:i s:o s:o}",
			"stage", all->profile.stages[e->stage].name,
			"kind", kind_name(all->profile.stages[e->stage].kind),
			"ns", (json_int_t)e->ns, "cpu", e->cpu,
			"again", e->again, "lost", e->lost,
			"flags", words_json(e->flags, flag_name),
			"facts", words_json(e->facts, fact_name));
		if (i + 1 < j->nevents)
			json_object_set_new(event, "next_ns",
					    json_integer(e[1].took_ns));
		if (e->place)
			json_object_set_new(event, "place",
					    place_json(e->place));
		json_array_append_new(list, event);
	}
	json_object_set_new(o, "events", list);
	for (k = 0; k < NRELATIONS; k++) {
		list = json_array();
		for (i = 0; i < all->n; i++)
			if (journey__relation(j, &all->list[i]) ==
			    relations[k].relation)
				json_array_append_new(list, json_integer(
						      all->list[i].number));
		json_object_set_new(o, relations[k].key, list);
	}
	return o;
}

int journey__print_json(const struct journeys *all,
			const struct journey_item *items, size_t n, bool list)
{
	json_t *packets = json_array();
	size_t i;

	for (i = 0; i < n; i++)
		json_array_append_new(packets, list ?
				      summary_json(all, items[i].j) :
				      journey_json(all, items[i].j));
	return print_json(json_pack("{s:s s:i s:I s:o}", "format",
				    "pathprof-journey", "version", 1, "lost",
				    (json_int_t)all->lost, "packets", packets),
			  JSON_INDENT(1));
}
