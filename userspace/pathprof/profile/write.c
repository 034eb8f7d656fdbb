// SPDX-License-Identifier: GPL-2.0-only
/*
 * The one writer of profile files: versioned JSON, described in
 * Documentation/reference/profile-format.rst.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/output-file.h"
#include "profile/path-id.h"
#include "profile/profile.h"
#include "profile/stats.h"

static json_t *numbers(const void *values, size_t n)
{
	const uint64_t *v = values;
	json_t *a = json_array();
	size_t i;

	for (i = 0; i < n; i++)
		json_array_append_new(a, json_integer(v[i]));
	return a;
}

static json_t *flags_json(uint32_t flags)
{
	json_t *a = json_array();
	unsigned int i;

	for (i = 0; i < 32; i++)
		if (flags >> i & 1 && flag_name(i))
			json_array_append_new(a, json_string(flag_name(i)));
	return a;
}

static json_t *facts_json(uint32_t facts)
{
	json_t *a = json_array();
	unsigned int i;

	for (i = 0; i < 32; i++)
		if (facts >> i & 1 && fact_name(i))
			json_array_append_new(a, json_string(fact_name(i)));
	return a;
}

/* NULL, and so left out, where it was not kept. */
static json_t *state_json(const struct path_state *s)
{
	json_t *o;
	int i;

	if (!s->packets)
		return NULL;
	o = json_pack("{s:I}", "packets", (json_int_t)s->packets);
	for (i = 0; i < STATE_MAX; i++)
		json_object_set_new(o, state_name(i), json_pack(
			"{s:I s:I s:I}", "least", (json_int_t)s->least[i],
			"most", (json_int_t)s->most[i],
			"sum", (json_int_t)s->sum[i]));
	return o;
}

static json_t *path_json(const struct profile *profile,
			 const struct profile_path *p)
{
	const char *where = profile__location(profile, &p->key);
	char id[PATH_ID];
	const struct path_value *v = &p->sum;
	json_t *stages = json_array();
	size_t i, hist = HIST_BUCKETS;

	for (i = 0; i < p->key.n && i < PATH_STAGES; i++)
		json_array_append_new(stages, json_integer(p->key.stages[i]));
	while (hist && !v->hist[hist - 1])
		hist--;
	return json_pack("{s:s s:s s:i s:s s:I s:s* s:o s:o s:o s:I s:I s:I s:I s:I s:o s:o s:o s:I s:I s:o*}",
			 "id", path__id(profile, &p->key, id),
			 "direction", dir_name(p->key.dir),
			 "family", p->key.family,
			 "end", end_word(p->key.end),
			 "reason", (json_int_t)p->key.reason,
			 "location", *where ? where : NULL,
			 "flags", flags_json(p->key.flags),
			 "facts", facts_json(p->key.facts),
			 "stages", stages,
			 "packets", (json_int_t)v->packets,
			 "segments", (json_int_t)v->segments,
			 "bytes", (json_int_t)v->bytes,
			 "work_ns", (json_int_t)v->work_ns,
			 "wait_ns", (json_int_t)v->wait_ns,
			 "stage_ns", numbers(v->stage_ns, p->key.n),
			 "stage_probe_ns", numbers(p->probe_ns, p->key.n),
			 "histogram", numbers(v->hist, hist),
			 "p50_ns", (json_int_t)path__quantile(v, 0.5),
			 "p99_ns", (json_int_t)path__quantile(v, 0.99),
			 "state", state_json(&p->state));
}

/* Names of the drop reasons that occur. */
static json_t *reasons_json(const struct profile *p)
{
	json_t *o = json_object();
	const char *name;
	char number[16];
	size_t i;

	for (i = 0; i < p->npaths; i++) {
		name = profile__reason(p, p->paths[i].key.reason);
		if (!*name)
			continue;
		snprintf(number, sizeof(number), "%u", p->paths[i].key.reason);
		json_object_set_new(o, number, json_string(name));
	}
	return o;
}

/* NULL, and so left out, where no times of stages were kept. */
static json_t *times_json(const struct profile *p, unsigned int id)
{
	size_t hist = HIST_BUCKETS;
	struct path_value v;

	if (!stage__times(p, id, &v))
		return NULL;
	while (hist && !v.hist[hist - 1])
		hist--;
	return json_pack("{s:o s:I s:I}", "histogram", numbers(v.hist, hist),
			 "p50_ns", (json_int_t)path__quantile(&v, 0.5),
			 "p99_ns", (json_int_t)path__quantile(&v, 0.99));
}

static json_t *stages_json(const struct profile *p)
{
	const struct profile_stage *s;
	json_t *a = json_array();
	size_t i;

	for (i = 0; i < PATHPROF_STAGE_MAX; i++) {
		s = &p->stages[i];
		if (!s->known)
			continue;
		json_array_append_new(a, json_pack(
			"{s:i s:s s:s s:s s:i s:s s:b s:s s:o*}",
			"id", (int)i, "name", s->name,
			"direction", dir_name(s->dir),
			"kind", kind_name(s->kind), "order", s->order,
			"hooks", s->hooks, "available", s->available,
			"meaning", s->meaning, "times", times_json(p, i)));
	}
	return a;
}

static json_t *hooks_json(const struct profile *p)
{
	const struct profile_hook *h;
	json_t *a = json_array();
	size_t i;

	for (i = 0; i < p->nhooks; i++) {
		h = &p->hooks[i];
		json_array_append_new(a, json_pack(
			"{s:s s:s s:s s:I s:s}", "name", h->name,
			"type", h->type, "state", hook_state_name(h->state),
			"missed", (json_int_t)h->missed, "why", h->why));
	}
	return a;
}

static json_t *probe_json(const struct profile *p)
{
	json_t *o = json_pack("{s:b s:b}", "known", p->probe_known,
			      "subtracted", p->subtracted);

#define COST(name) \
	json_object_set_new(o, #name "_ns", json_integer(p->probe.name));
	PROBE_COSTS(COST)
#undef COST
	return o;
}

/* NULL, and so left out, where there was none. */
static json_t *load_json(const struct profile *p)
{
	if (!p->load_packets)
		return NULL;
	return json_pack("{s:I s:I s:I}", "ns", (json_int_t)p->load_ns, "packets",
			 (json_int_t)p->load_packets, "bytes",
			 (json_int_t)p->load_bytes);
}

/* A command line may hold bytes that are not UTF-8; JSON may not. */
static json_t *text_json(const char *text)
{
	json_t *j = text ? json_string(text) : json_null();
	char *copy, *c;

	if (j)
		return j;
	copy = strdup(text);
	for (c = copy; c && *c; c++)
		if (*c & 0x80)
			*c = '?';
	j = json_string(copy ? copy : "");
	free(copy);
	return j;
}

json_t *profile__to_json(const struct profile *p)
{
	json_t *account = json_object(), *counters = json_object();
	json_t *paths = json_array();
	struct profile_totals t;
	size_t i;

	profile__totals(p, &t);
	json_object_set_new(account, "sampled",
			    json_integer(p->counters[CN_SAMPLED]));
	for (i = 1; i < PATHPROF_END_MAX; i++)
		if (end_word(i))
			json_object_set_new(account, end_word(i),
					    json_integer(p->ends[i]));
	for (i = 1; i < PATHPROF_COUNTER_MAX; i++)
		/* Only where --stages was given: files without are as before. */
		if (counter_name(i) && (i < CN_SPLIT || p->counters[i]))
			json_object_set_new(counter_is_loss(i) ? account :
					    counters, counter_name(i),
					    json_integer(p->counters[i]));
	/* The format's key, which does not change. */
	json_object_set_new(account, "in_flight", json_integer(p->followed));
	json_object_set_new(account, "unaccounted",
			    json_integer(t.unaccounted));
	for (i = 0; i < p->npaths; i++)
		json_array_append_new(paths, path_json(p, &p->paths[i]));
	return json_pack(
		"{s:s s:i s:{s:s s:s} s:{s:s s:s} s:s s:s s:I s:I"
		" s:I s:o s:{s:i s:i s:i s:s s:o* s:o* s:o* s:o*} s:o s:i s:{s:I s:I} s:o s:o s:o s:o s:o"
		" s:o s:o*}",
		"format", PROFILE_FORMAT, "version", PROFILE_VERSION,
		"tool", "name", "pathprof", "version", p->tool_version,
		"kernel", "release", p->release, "machine", p->machine,
		"clock", "bpf_ktime_get_ns", "started", p->started,
		"duration_ns", (json_int_t)p->duration_ns,
		"open_ns", (json_int_t)p->open_ns,
		"probe_ns", (json_int_t)p->probe_ns,
		"probe", probe_json(p),
		"config", "sample", (int)p->sample,
		"budget_ppm", (int)p->budget_ppm, "port", (int)p->port,
		"addr", p->addr, "filter",
		*p->filter ? text_json(p->filter) : NULL,
		"udp", p->udp ? json_true() : NULL,
		"icmp", p->icmp ? json_true() : NULL,
		"fine", p->fine ? json_true() : NULL,
		"command", text_json(p->command),
		"command_status", p->command_status,
		"prediction", "data", (json_int_t)t.data,
		"fast_data", (json_int_t)t.fast_data,
		"account", account, "counters", counters,
		"hooks", hooks_json(p), "stages", stages_json(p),
		"reasons", reasons_json(p), "paths", paths,
		"load", load_json(p));
}

static int fill_profile(FILE *f, void *root)
{
	return json_dumpf(root, f, JSON_INDENT(1)) || putc('\n', f) == EOF;
}

int profile__write(const struct profile *p, const char *path,
		   char *err, size_t len)
{
	json_t *root = profile__to_json(p);
	int rc;

	if (!root) {
		snprintf(err, len, "cannot write %s: out of memory", path);
		return -ENOMEM;
	}
	rc = output_file__write(path, fill_profile, root, err, len);
	json_decref(root);
	return rc;
}
