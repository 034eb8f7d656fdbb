// SPDX-License-Identifier: GPL-2.0-only
/*
 * pathprof explain: per branch of the stack, the share that took each way,
 * its cost, and the facts that separate the two ways, strongest first.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include "base/tool.h"
#include "profile/explain.h"
#include "profile/stats.h"
#include "view/render.h"

static void print_way(const struct branch *b, int way, double all)
{
	const struct path_value *v = &b->sum[way];
	char packets[8], mean[8], p50[8], p99[8], wait[8];

	printf("  %-10s %5s pkt %5.1f %% +-%-4.1f %6s ns each "
	       "(p50 %s, p99 %s)", b->ways[way], human(v->packets, packets),
	       100.0 * v->packets / all,
	       100 * share__interval(v->packets, all),
	       human(path__mean(v), mean), human(path__quantile(v, 0.5), p50),
	       human(path__quantile(v, 0.99), p99));
	if (v->wait_ns && v->packets)
		printf("\n  %-10s %24s %6s ns waiting", "", "",
		       human((double)v->wait_ns / v->packets, wait));
	putchar('\n');
}

static void print_branch(const struct branch *b)
{
	double all = b->sum[0].packets + b->sum[1].packets;
	const struct branch_fact *f;
	char with[8], without[8];
	size_t i;

	printf("\n%s\n", b->title);
	print_way(b, 0, all);
	print_way(b, 1, all);
	for (i = 0; i < b->nfacts; i++) {
		f = &b->facts[i];
		printf("    %-22s %6s %s, %s %s\n", fact_name(f->bit),
		       human(f->with[1], with), b->ways[1],
		       human(f->with[0], without), b->ways[0]);
		printf("      %s\n", fact_meaning(f->bit));
	}
}

static json_t *branch_json(const struct branch *b)
{
	json_t *ways = json_array(), *facts = json_array();
	size_t i;

	for (i = 0; i < WAYS; i++)
		json_array_append_new(ways, json_pack(
			"{s:s s:I s:I s:I s:I s:I s:f s:f}", "way", b->ways[i],
			"packets", (json_int_t)b->sum[i].packets,
			"segments", (json_int_t)b->sum[i].segments,
			"bytes", (json_int_t)b->sum[i].bytes,
			"work_ns", (json_int_t)b->sum[i].work_ns,
			"wait_ns", (json_int_t)b->sum[i].wait_ns,
			"p50_ns", path__quantile(&b->sum[i], 0.5),
			"p99_ns", path__quantile(&b->sum[i], 0.99)));
	for (i = 0; i < b->nfacts; i++)
		json_array_append_new(facts, json_pack(
			"{s:s s:s s:[I I]}", "fact",
			fact_name(b->facts[i].bit), "meaning",
			fact_meaning(b->facts[i].bit), "packets",
			(json_int_t)b->facts[i].with[0],
			(json_int_t)b->facts[i].with[1]));
	return json_pack("{s:s s:s s:o s:o}", "branch", b->name, "title",
			 b->title, "ways", ways, "facts", facts);
}

static int print_branches(const struct branch *b, size_t n)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < n; i++)
		json_array_append_new(list, branch_json(&b[i]));
	return print_json(json_pack("{s:s s:i s:o}", "format",
				    "pathprof-explain", "version", 1,
				    "branches", list), JSON_INDENT(1));
}

int cmd_explain(const struct command *self, int argc, char **argv)
{
	bool json = false, raw = false;
	const struct option_def options[] = {
		{ 0, "json", OPT_FLAG, &json, 0, 0, NULL, "print as JSON" },
		RAW_OPTION(&raw),
		{ 0 }
	};
	int at = options__read(self, options, argc, argv), rc = EXIT_GOOD;
	struct branch *branches;
	struct profile p;
	char err[512];
	size_t n, i;

	if (at < 0)
		return options__status(at);
	if (argc - at != 1) {
		complain("explain: which profile file?  Name one");
		return EXIT_USAGE;
	}
	if (profile__view(&p, argv[at], raw, err, sizeof(err))) {
		complain("explain: %s", err);
		return EXIT_FAILED;
	}
	branches = explain(&p, &n);
	if (!branches) {
		complain("explain: out of memory");
		rc = EXIT_FAILED;
	} else if (json) {
		rc = print_branches(branches, n);
	} else {
		render__head(stdout, &p, &p);
		if (!n)
			printf("\nNo packet met a branch.\n");
		for (i = 0; i < n; i++)
			print_branch(&branches[i]);
	}
	free(branches);
	profile__free(&p);
	return finish_stdout(rc);
}
