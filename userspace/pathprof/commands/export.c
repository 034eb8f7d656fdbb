// SPDX-License-Identifier: GPL-2.0-only
/*
 * pathprof export: a profile in the formats of other tools.
 */
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "base/tool.h"
#include "profile/path-id.h"
#include "profile/stats.h"
#include "view/render.h"

/* A path's words as one field, without characters special to a format. */
static const char *field(const struct profile *p,
			 const struct profile_path *path, char *out,
			 size_t size)
{
	char *c;

	path__words(p, path, out, size);
	for (c = out; *c; c++)
		if (*c == ',' || *c == ';' || *c == '"' || *c == '\\' ||
		    iscntrl((unsigned char)*c))
			*c = '_';
	return out;
}

static const char *stage_name(const struct profile *p,
			      const struct profile_path *path, size_t i,
			      char *out, size_t size)
{
	char *c;

	printable(p->stages[path->key.stages[i] % PATHPROF_STAGE_MAX].name, out, size);
	for (c = out; *c; c++)
		if (!isalnum((unsigned char)*c))
			*c = '_';
	return out;
}

static void export_csv(const struct profile *p)
{
	char words[PATH_WORDS], stage[32];
	const struct path_value *v;
	char id[PATH_ID];
	size_t i, j;

	printf("path,kind,position,stage,wait,packets,segments,bytes,ns,"
	       "probe_ns,path_p50_ns,path_p99_ns\n");
	for (i = 0; i < p->npaths; i++) {
		v = &p->paths[i].sum;
		for (j = 0; j < p->paths[i].key.n; j++)
			printf("%s,%s,%zu,%s,%d,%llu,%llu,%llu,%llu,%llu,"
			       "%.0f,%.0f\n",
			       path__id(p, &p->paths[i].key, id),
			       field(p, &p->paths[i], words, sizeof(words)), j,
			       stage_name(p, &p->paths[i], j, stage,
					  sizeof(stage)),
			       p->stages[p->paths[i].key.stages[j] % PATHPROF_STAGE_MAX].kind
			       == KIND_WAIT, v->packets, v->segments, v->bytes,
			       v->stage_ns[j],
			       (unsigned long long)p->paths[i].probe_ns[j],
			       path__quantile(v, 0.5), path__quantile(v, 0.99));
	}
}

/* One line per path and stage, as flamegraph.pl and speedscope read it. */
static void export_folded(const struct profile *p)
{
	char words[PATH_WORDS], stage[32];
	size_t i, j;

	for (i = 0; i < p->npaths; i++)
		for (j = 0; j < p->paths[i].key.n; j++)
			if (p->paths[i].sum.stage_ns[j])
				printf("%s;%s%s %llu\n",
				       field(p, &p->paths[i], words,
					     sizeof(words)),
				       stage_name(p, &p->paths[i], j, stage,
						  sizeof(stage)),
				       p->stages[p->paths[i].key.stages[j] &
						 63].kind == KIND_WAIT ?
				       "_(wait)" : "",
				       p->paths[i].sum.stage_ns[j]);
}

static void family(const char *name, const char *type, const char *unit,
		   const char *help)
{
	printf("# TYPE pathprof_%s %s\n", name, type);
	if (*unit)
		printf("# UNIT pathprof_%s %s\n", name, unit);
	printf("# HELP pathprof_%s %s\n", name, help);
}

/* quantile: of a gauge; NULL for a counter. */
static void metric(const struct profile *p, const char *name, size_t i,
		   const char *quantile, double value)
{
	char words[PATH_WORDS], id[PATH_ID];

	printf("pathprof_%s%s{path=\"%s\",kind=\"%s\",direction=\"%s\","
	       "end=\"%s\"%s%s%s} %.17g\n", name, quantile ? "" : "_total",
	       path__id(p, &p->paths[i].key, id),
	       field(p, &p->paths[i], words, sizeof(words)),
	       dir_name(p->paths[i].key.dir), end_word(p->paths[i].key.end),
	       quantile ? ",quantile=\"" : "", quantile ? quantile : "",
	       quantile ? "\"" : "", value);
}

static void export_openmetrics(const struct profile *p)
{
	size_t i;

	family("packets", "counter", "", "Sampled packets of this path.");
	for (i = 0; i < p->npaths; i++)
		metric(p, "packets", i, NULL, p->paths[i].sum.packets);
	family("bytes", "counter", "", "Their payload.");
	for (i = 0; i < p->npaths; i++)
		metric(p, "bytes", i, NULL, p->paths[i].sum.bytes);
	family("work_seconds", "counter", "seconds", "Time of work on them.");
	for (i = 0; i < p->npaths; i++)
		metric(p, "work_seconds", i, NULL, p->paths[i].sum.work_ns / 1e9);
	family("wait_seconds", "counter", "seconds", "Time they lay in queues.");
	for (i = 0; i < p->npaths; i++)
		metric(p, "wait_seconds", i, NULL, p->paths[i].sum.wait_ns / 1e9);
	family("work_per_packet_seconds", "gauge", "seconds",
	       "Quantiles of the work on one packet, estimated.");
	for (i = 0; i < p->npaths; i++) {
		metric(p, "work_per_packet_seconds", i, "0.5",
		       path__quantile(&p->paths[i].sum, 0.5) / 1e9);
		metric(p, "work_per_packet_seconds", i, "0.99",
		       path__quantile(&p->paths[i].sum, 0.99) / 1e9);
	}
	printf("# EOF\n");
}

/* The mean packet of each path as slices of a track (trace event format). */
static int export_perfetto(const struct profile *p)
{
	json_t *events = json_array();
	char words[PATH_WORDS], stage[32];
	const struct path_value *v;
	double at, ns;
	size_t i, j;

	for (i = 0; i < p->npaths; i++) {
		v = &p->paths[i].sum;
		json_array_append_new(events, json_pack(
			"{s:s s:s s:i s:I s:{s:s}}", "name", "thread_name",
			"ph", "M", "pid", 1, "tid", (json_int_t)i + 1, "args",
			"name", field(p, &p->paths[i], words, sizeof(words))));
		for (j = 0, at = 0; v->packets && j < p->paths[i].key.n; j++) {
			ns = (double)v->stage_ns[j] / v->packets;
			json_array_append_new(events, json_pack(
				"{s:s s:s s:i s:I s:f s:f s:{s:I}}", "name",
				stage_name(p, &p->paths[i], j, stage,
					   sizeof(stage)),
				"ph", "X", "pid", 1, "tid", (json_int_t)i + 1,
				"ts", at / 1000, "dur", ns / 1000, "args",
				"packets", (json_int_t)v->packets));
			at += ns;
		}
	}
	return print_json(json_pack("{s:s s:o}", "displayTimeUnit", "ns",
				    "traceEvents", events), JSON_COMPACT);
}

static const char *const formats[] = {
	"json", "csv", "folded", "openmetrics", "perfetto",
};

static int export(const struct profile *p, const char *format)
{
	switch (format[0]) {
	case 'j':
		return print_json(profile__to_json(p), JSON_INDENT(1));
	case 'c':
		export_csv(p);
		break;
	case 'f':
		export_folded(p);
		break;
	case 'o':
		export_openmetrics(p);
		break;
	default:
		return export_perfetto(p);
	}
	return EXIT_GOOD;
}

int cmd_export(const struct command *self, int argc, char **argv)
{
	const char *format = "json";
	bool raw = false;
	const struct option_def options[] = {
		{ 'f', "format", OPT_TEXT, &format, 0, 0, "FORMAT",
		  "json, csv, folded, openmetrics, perfetto" },
		RAW_OPTION(&raw),
		{ 0 }
	};
	int at = options__read(self, options, argc, argv), rc;
	size_t n = sizeof(formats) / sizeof(*formats), i;
	struct profile p;
	char err[512];

	if (at < 0)
		return options__status(at);
	for (i = 0; i < n && strcmp(format, formats[i]); i++)
		;
	if (i == n) {
		complain("export: unknown format \"%s\"%s", format,
			 nearest(format, formats, n));
		return EXIT_USAGE;
	}
	if (argc - at != 1) {
		complain("export: which profile file?  Name one");
		return EXIT_USAGE;
	}
	if (profile__view(&p, argv[at], raw, err, sizeof(err))) {
		complain("export: %s", err);
		return EXIT_FAILED;
	}
	rc = export(&p, format);
	profile__free(&p);
	return finish_stdout(rc);
}
