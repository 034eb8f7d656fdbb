// SPDX-License-Identifier: GPL-2.0-only
/*
 * A frame of `pathprof top` as one line of JSON (profile-format.rst, JSON
 * LINES).
 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "base/tool.h"
#include "profile/label.h"
#include "profile/path-id.h"
#include "profile/stats.h"
#include "view/render.h"
#include "view/summary.h"

static json_t *reason_json(const struct profile *p, uint32_t reason)
{
	return *profile__reason(p, reason) ?
	       json_string(profile__reason(p, reason)) : json_integer(reason);
}

static json_t *drops_json(const struct profile *p)
{
	json_t *list = json_array();
	struct drop *d;
	size_t n, i;

	d = summary__drops(p, &n);
	for (i = 0; d && i < n; i++)
		json_array_append_new(list, json_pack("{s:o s:s s:s* s:s* s:I}",
			"reason", reason_json(p, d[i].reason),
			"direction", dir_name(d[i].dir), "after",
			d[i].stage ? p->stages[d[i].stage].name : NULL,
			"location", *d[i].where ? d[i].where : NULL,
			"packets", (json_int_t)d[i].packets));
	free(d);
	return list;
}

static json_t *slow_json(const struct summary *sum)
{
	json_t *reasons = json_object();
	size_t i;

	for (i = 0; i < sum->nreasons; i++)
		json_object_set_new(reasons, fact_name(sum->reasons[i].fact),
				    json_integer(sum->reasons[i].packets));
	return json_pack("{s:I s:I s:o}", "fast", (json_int_t)sum->fast,
			 "slow", (json_int_t)sum->slow, "reasons", reasons);
}

static json_t *path_json(const struct profile *p, const struct summary *sum,
			 const struct profile_path *path, const char *label)
{
	double per_s = sum->seconds > 0 ? sum->weight / sum->seconds : 0;
	const struct path_value *v = &path->sum;
	double n = v->packets ? v->packets : 1;
	json_t *stages = json_array();
	char id[PATH_ID];
	unsigned int i;

	for (i = 0; i < path->key.n && i < PATH_STAGES; i++)
		json_array_append_new(stages, json_pack("{s:s s:s s:f}",
			"stage", profile__stage(p, &path->key, i)->name,
			"kind",
			kind_name(profile__stage(p, &path->key, i)->kind),
			"ns", v->stage_ns[i] / n));
	return json_pack("{s:s s:s s:I s:I s:I s:f s:f s:f s:f s:f s:f s:o}",
			 "id", path__id(p, &path->key, id), "path", label,
			 "packets", (json_int_t)v->packets, "segments",
			 (json_int_t)v->segments, "bytes", (json_int_t)v->bytes,
			 "packets_per_s", v->packets * per_s,
			 "bits_per_s", v->bytes * 8 * per_s,
			 "work_ns", v->work_ns / n, "wait_ns", v->wait_ns / n,
			 "p50_ns", path__quantile(v, 0.5),
			 "p99_ns", path__quantile(v, 0.99), "stages", stages);
}

static json_t *paths_json(const struct profile *p, const struct summary *sum)
{
	size_t *order = path__order(p, SORT_COST), i;
	label_text *names = labels(p, true);
	json_t *list = json_array();

	for (i = 0; order && names && i < p->npaths; i++)
		json_array_append_new(list, path_json(p, sum,
						      &p->paths[order[i]],
						      names[order[i]]));
	free(order);
	free(names);
	return list;
}

int render__json(const struct profile *interval, const struct profile *total,
		 const struct live *live)
{
	const struct profile *p = interval;
	struct profile_totals all;
	struct summary sum;
	json_t *bursts = NULL;

	summary__make(p, &sum);
	profile__totals(total, &all);
	if (live->in_bursts)
		bursts = json_pack("{s:I s:f s:f s:f}", "count",
				   (json_int_t)p->counters[CN_BURSTS],
				   "open_s", p->open_ns / 1e9, "age_s",
				   live->age, "budget_percent", live->budget);
	return print_json(json_pack(
		"{s:s s:i s:s s:f s:f s:i s:I s:f s:f s:f s:I s:I s:I s:o* s:o s:o s:o}",
		"format", "pathprof-top", "version", 1,
		"kernel", p->release, "since_start_s", total->duration_ns / 1e9,
		"interval_s", p->duration_ns / 1e9, "sample", (int)p->sample,
		"packets", (json_int_t)sum.totals.packets,
		"packets_per_s", sum.packets, "bits_per_s", sum.bits,
		"own_percent", live->own,
		"dropped", (json_int_t)sum.totals.dropped,
		"total_packets", (json_int_t)all.packets,
		"total_lost", (json_int_t)all.lost,
		"bursts", bursts, "data", slow_json(&sum),
		"drops", drops_json(p), "paths", paths_json(p, &sum)),
		JSON_COMPACT);
}
