// SPDX-License-Identifier: GPL-2.0-only
/*
 * pathprof diff: the differences of two profiles by kind of packet: the share
 * of packets and the mean cost, with the interval of the difference.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/tool.h"
#include "profile/stats.h"
#include "view/render.h"

#define Z95 1.96

/* Packets of one kind, of both profiles. */
struct row {
	char words[PATH_WORDS];
	struct path_value sum[2];
	double share[2], mean[2];
	double share_by, mean_by;	/* half widths of the 95 % intervals */
	double weight;			/* cost it moves per packet of all */
};

struct table {
	struct row *rows;
	size_t n;
	double packets[2];
};

static struct row *row_of(struct table *t, const char *words)
{
	struct row *grown;
	size_t i;

	for (i = 0; i < t->n; i++)
		if (!strcmp(t->rows[i].words, words))
			return &t->rows[i];
	grown = reallocarray(t->rows, t->n + 1, sizeof(*grown));
	if (!grown)
		return NULL;
	t->rows = grown;
	grown += t->n++;
	memset(grown, 0, sizeof(*grown));
	snprintf(grown->words, sizeof(grown->words), "%s", words);
	return grown;
}

static int add(struct table *t, const struct profile *p, int which)
{
	struct row *row;
	char words[PATH_WORDS];
	size_t i;

	for (i = 0; i < p->npaths; i++) {
		path__words(p, &p->paths[i], words, sizeof(words));
		row = row_of(t, words);
		if (!row)
			return -1;
		path__add(&row->sum[which], &p->paths[i].sum);
		t->packets[which] += p->paths[i].sum.packets;
	}
	return 0;
}

static void compute(struct row *r, const double *all)
{
	double variance[2], by[2];
	int i;

	for (i = 0; i < 2; i++) {
		r->share[i] = all[i] ? r->sum[i].packets / all[i] : 0;
		by[i] = share__interval(r->sum[i].packets, all[i]);
		r->mean[i] = path__mean(&r->sum[i]);
		variance[i] = path__mean_variance(&r->sum[i]);
	}
	r->share_by = hypot(by[0], by[1]);
	r->mean_by = Z95 * sqrt(variance[0] + variance[1]);
	r->weight = fabs(r->share[1] * r->mean[1] - r->share[0] * r->mean[0]);
}

static int by_weight(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return strcmp(x->words, y->words);
}

static bool differs(double a, double b, double by)
{
	return fabs(b - a) > by;
}

static void print_rows(const struct table *t, size_t limit, bool same_filter)
{
	const struct row *r;
	char a[8], b[8], what[23];
	size_t i;

	if (!same_filter)
		printf("Recorded with different filters, --udp or --fine: a "
		       "share is of what each chose.\n");
	printf("  PKT%%   NEW%%      +-   NS/PKT     NEW   CHANGE%%      +-  "
	       "WHAT\n");
	for (i = 0; i < t->n && (!limit || i < limit); i++) {
		r = &t->rows[i];
		printf("%6.1f %6.1f%c %6.2f  %7s %7s ", 100 * r->share[0],
		       100 * r->share[1],
		       differs(r->share[0], r->share[1], r->share_by) ?
		       '*' : ' ', 100 * r->share_by,
		       human(r->mean[0], a), human(r->mean[1], b));
		if (r->mean[0] && r->mean[1])
			printf("%+8.2f%c %7.2f", 100 * (r->mean[1] /
			       r->mean[0] - 1), differs(r->mean[0],
			       r->mean[1], r->mean_by) ? '*' : ' ',
			       100 * r->mean_by / r->mean[0]);
		else
			printf("%17s", "");
		printf("  %s\n", printable(r->words, what, sizeof(what)));
	}
	printf("*: outside the 95 %% interval (+-).  Costliest change first.\n");
}

static int rows_json(const struct table *t, bool same_filter)
{
	json_t *list = json_array();
	const struct row *r;
	size_t i;

	for (i = 0; i < t->n; i++) {
		r = &t->rows[i];
		json_array_append_new(list, json_pack(
			"{s:s s:[I I] s:[I I] s:[f f] s:f s:f}",
			"kind", r->words,
			"packets", (json_int_t)r->sum[0].packets,
			(json_int_t)r->sum[1].packets,
			"work_ns", (json_int_t)r->sum[0].work_ns,
			(json_int_t)r->sum[1].work_ns,
			"share", r->share[0], r->share[1],
			"share_interval", r->share_by,
			"mean_interval", r->mean_by));
	}
	return print_json(json_pack("{s:s s:i s:b s:o}", "format",
				    "pathprof-diff", "version", 1,
				    "same_filter", same_filter, "rows", list),
			  JSON_INDENT(1));
}

static int compare(const struct profile *p, bool json, size_t limit)
{
	bool same_filter = profile__same_filter(&p[0], &p[1]);
	struct table t = {};
	int rc = EXIT_GOOD;
	size_t i;

	if (p[0].subtracted != p[1].subtracted) {
		complain("diff: one is of an older pathprof, whose own cost is "
			 "not known; --raw compares times as measured");
		return EXIT_FAILED;
	}
	if (add(&t, &p[0], 0) || add(&t, &p[1], 1)) {
		complain("diff: out of memory");
		free(t.rows);
		return EXIT_FAILED;
	}
	for (i = 0; i < t.n; i++)
		compute(&t.rows[i], t.packets);
	if (t.n)
		qsort(t.rows, t.n, sizeof(*t.rows), by_weight);
	if (json)
		rc = rows_json(&t, same_filter);
	else
		print_rows(&t, limit, same_filter);
	free(t.rows);
	return rc;
}

int cmd_diff(const struct command *self, int argc, char **argv)
{
	unsigned int limit = 0;
	bool json = false, raw = false;
	const struct option_def options[] = {
		{ 0, "json", OPT_FLAG, &json, 0, 0, NULL, "print as JSON" },
		RAW_OPTION(&raw),
		{ 'n', "limit", OPT_UINT, &limit, 1, PATH_PATHS, "N",
		  "show only the N largest changes" },
		{ 0 }
	};
	int at = options__read(self, options, argc, argv), rc;
	struct profile p[2];
	char err[512];

	if (at < 0)
		return options__status(at);
	if (argc - at != 2) {
		complain("diff: which two profile files?  Name the old one "
			 "and the new one");
		return EXIT_USAGE;
	}
	if (profile__view(&p[0], argv[at], raw, err, sizeof(err))) {
		complain("diff: %s", err);
		return EXIT_FAILED;
	}
	if (profile__view(&p[1], argv[at + 1], raw, err, sizeof(err))) {
		complain("diff: %s", err);
		profile__free(&p[0]);
		return EXIT_FAILED;
	}
	rc = compare(p, json, limit);
	profile__free(&p[0]);
	profile__free(&p[1]);
	return finish_stdout(rc);
}
