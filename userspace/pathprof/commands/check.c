// SPDX-License-Identifier: GPL-2.0-only
/*
 * pathprof check: has something become worse?  Compares the metrics of a new
 * profile with those of one baseline or several, and answers by exit status
 * as `git bisect run` expects it: 0 good, 1 worse, 125 cannot tell.
 */
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/tool.h"
#include "profile/metrics.h"

#define BASES	32
#define ENOUGH	100	/* packets that a metric must rest on */
#define SPREAD	3	/* times what baselines differ among themselves */
/*
 * Of so many the one farthest off is left out: one recording of some sixty
 * finds another level of the same kernel, and would make the bound useless.
 * Where a kernel has two levels in earnest, both are still there.
 */
#define MANY	5
/*
 * The whole of the run without pathprof repeats that much better than its
 * parts: between boots of one kernel within 0.03 %, a stage within 0.15 %.
 */
#define STEADIER	4

struct comparison {
	const char *name;
	enum metric_kind kind;
	int bad;
	double base, new, bound;	/* bound: of the change, below */
	double change;	/* costs: relative; shares: difference */
	bool worse, moved;
};

struct check {
	const char *metric;	/* NULL: all; else a name, or how it begins */
	double tolerance;	/* share */
	struct profile bases[BASES], new;
	size_t nbases;
	struct metric *base_metrics[BASES], *new_metrics;
	size_t base_n[BASES], new_n;
	struct comparison *compared;
	size_t n;
};

static const struct metric *find(const struct metric *list, size_t n,
				 const char *name)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!strcmp(list[i].name, name))
			return &list[i];
	return NULL;
}

static bool asked_for(const struct check *c, const char *name)
{
	size_t len;

	if (!c->metric)
		return true;
	len = strlen(c->metric);
	return !strncmp(name, c->metric, len) &&
	       (!name[len] || name[len] == '.');
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Mean of the baselines' values, and what they differ by. */
static double mean_of(double *values, size_t n, double *spread)
{
	double sum = 0;
	size_t i;

	qsort(values, n, sizeof(*values), by_value);
	if (n >= MANY) {
		if (values[n / 2] - values[0] > values[n - 1] - values[n / 2])
			values++;
		n--;
	}
	for (i = 0; i < n; i++)
		sum += values[i];
	*spread = values[n - 1] - values[0];
	return sum / n;
}

/*
 * Compare one metric: mean and spread of the baselines, the new value.  False
 * if it rests on too little, or is not there on both sides.
 */
static bool compare(const struct check *c, const struct metric *m,
		    struct comparison *f)
{
	double values[BASES], spread;
	const struct metric *b;
	size_t i;

	if (m->packets < ENOUGH)
		return false;
	for (i = 0; i < c->nbases; i++) {
		b = find(c->base_metrics[i], c->base_n[i], m->name);
		if (!b || b->packets < ENOUGH)
			return false;
		values[i] = b->value;
	}
	f->name = m->name;
	f->kind = m->kind;
	f->bad = m->bad;
	f->base = mean_of(values, c->nbases, &spread);
	f->new = m->value;
	f->change = f->new - f->base;
	f->bound = SPREAD * spread;
	if (m->kind == METRIC_COST) {
		if (f->base <= 0)
			return false;
		f->change /= f->base;
		f->bound /= f->base;
	}
	f->bound = fmax(f->bound,
			strncmp(m->name, METRIC_LOAD, strlen(METRIC_LOAD)) ?
			c->tolerance : c->tolerance / STEADIER);
	f->moved = fabs(f->change) > f->bound;
	f->worse = f->moved && f->change * f->bad > 0;
	return true;
}

/* Worse before merely moved before within bounds; in each, largest first. */
static int by_change(const void *a, const void *b)
{
	const struct comparison *x = a, *y = b;

	if (x->worse != y->worse)
		return x->worse ? -1 : 1;
	if (x->moved != y->moved)
		return x->moved ? -1 : 1;
	if (fabs(x->change) != fabs(y->change))
		return fabs(x->change) < fabs(y->change) ? 1 : -1;
	return strcmp(x->name, y->name);
}

static bool same_text(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

/* Why these two cannot be compared; NULL if they can. */
static const char *unlike(const struct profile *a, const struct profile *b)
{
	if (!same_text(a->command, b->command))
		return "recorded with another command";
	if (a->sample != b->sample || !a->budget_ppm != !b->budget_ppm)
		return "sampled in another way";
	if (!profile__same_filter(a, b))
		return "recorded with another filter, --udp or --fine";
	if (a->subtracted != b->subtracted)
		return "of an older pathprof, whose own cost is not known; "
		       "--raw compares times as measured";
	if (strcmp(a->machine, b->machine))
		return "from another kind of machine";
	return NULL;
}

/* The reason why a profile cannot be compared with any; NULL if none. */
static const char *unusable(const struct profile *p)
{
	struct profile_totals t;

	profile__totals(p, &t);
	if (p->command_status)
		return "of a command that failed";
	if (t.packets < ENOUGH)
		return "too few packets";
	if (t.lost > t.packets / 100)
		return "of a recording that lost more than 1 % of its packets";
	return NULL;
}

static int cannot_tell(const char *path, const char *why)
{
	char name[256];

	complain("check: cannot tell: %s: %s",
		 printable(path, name, sizeof(name)), why);
	return EXIT_CANNOT_TELL;
}

static void print_comparison(const struct comparison *f)
{
	char name[48];

	/* Names of stages are the file's. */
	printable(f->name, name, sizeof(name));
	if (f->kind == METRIC_SHARE)
		printf("%-7s %-24s %9.2f %% %9.2f %% %+8.2f   %6.2f\n",
		       f->worse ? "worse" : f->moved ? "moved" : "",
		       name, 100 * f->base, 100 * f->new, 100 * f->change,
		       100 * f->bound);
	else
		printf("%-7s %-24s %11.4g %11.4g %+8.2f %% %6.2f\n",
		       f->worse ? "worse" : f->moved ?
		       f->change < 0 ? "better" : "moved" : "",
		       name, f->base, f->new, 100 * f->change,
		       100 * f->bound);
}

static void print_text(const struct check *c, bool all)
{
	size_t i, moved = 0;

	for (i = 0; i < c->n; i++)
		moved += c->compared[i].moved;
	if (moved || all)
		printf("%-7s %-24s %11s %11s %10s %6s\n", "", "FIGURE",
		       "BASE", "NEW", "CHANGE", "BOUND");
	for (i = 0; i < c->n && (all || c->compared[i].moved); i++)
		print_comparison(&c->compared[i]);
	printf("%zu metrics compared, %zu outside their bounds: %s\n", c->n,
	       moved, c->compared[0].worse ? "worse" : "good");
}

static int figures_json(const struct check *c)
{
	json_t *list = json_array();
	const struct comparison *f;
	size_t i;

	for (i = 0; i < c->n; i++) {
		f = &c->compared[i];
		json_array_append_new(list, json_pack(
			"{s:s s:s s:f s:f s:f s:f s:b s:b}", "name", f->name,
			"kind", f->kind == METRIC_SHARE ? "share" : "cost",
			"base", f->base, "new", f->new, "change", f->change,
			"bound", f->bound, "moved", f->moved,
			"worse", f->worse));
	}
	return print_json(json_pack("{s:s s:i s:s s:o}", "format",
				    "pathprof-check", "version", 1, "verdict",
				    c->compared[0].worse ? "worse" : "good",
				    "figures", list), JSON_INDENT(1));
}

static int check(struct check *c, char **paths, bool json, bool all)
{
	const char *why = unusable(&c->new);
	size_t i;

	if (why)
		return cannot_tell(paths[c->nbases], why);
	for (i = 0; i < c->nbases; i++) {
		why = unusable(&c->bases[i]);
		if (!why)
			why = unlike(&c->bases[i], &c->new);
		if (why)
			return cannot_tell(paths[i], why);
		c->base_metrics[i] = metrics(&c->bases[i], &c->base_n[i]);
		if (!c->base_metrics[i])
			return cannot_tell(paths[i], "out of memory");
	}
	c->new_metrics = metrics(&c->new, &c->new_n);
	c->compared = calloc(c->new_n + 1, sizeof(*c->compared));
	if (!c->new_metrics || !c->compared)
		return cannot_tell(paths[c->nbases], "out of memory");
	for (i = 0; i < c->new_n; i++)
		if (asked_for(c, c->new_metrics[i].name))
			c->n += compare(c, &c->new_metrics[i],
					&c->compared[c->n]);
	if (!c->n)
		return cannot_tell(c->metric ? c->metric : paths[c->nbases],
				   "no metric that both have of 100 packets "
				   "or more");
	qsort(c->compared, c->n, sizeof(*c->compared), by_change);
	if (!json)
		print_text(c, all);
	else if (figures_json(c))
		return EXIT_CANNOT_TELL;
	return c->compared[0].worse ? EXIT_FAILED : EXIT_GOOD;
}

static void release(struct check *c, size_t read)
{
	size_t i;

	for (i = 0; i < read; i++)
		profile__free(i < c->nbases ? &c->bases[i] : &c->new);
	for (i = 0; i < c->nbases; i++)
		free(c->base_metrics[i]);
	free(c->new_metrics);
	free(c->compared);
	free(c);
}

int cmd_check(const struct command *self, int argc, char **argv)
{
	double tolerance = 1;
	bool json = false, all = false, raw = false;
	const char *metric = NULL;
	const struct option_def options[] = {
		{ 0, "tolerance", OPT_PERCENT, &tolerance, 0, 1000, "PCT",
		  "ignore changes up to this (default 1 %)" },
		{ 0, "metric", OPT_TEXT, &metric, 0, 0, "NAME",
		  "only metrics whose names begin with NAME" },
		{ 0, "all", OPT_FLAG, &all, 0, 0, NULL,
		  "also print metrics within their bounds" },
		{ 0, "json", OPT_FLAG, &json, 0, 0, NULL, "print as JSON" },
		RAW_OPTION(&raw),
		{ 0 }
	};
	int at = options__read(self, options, argc, argv), files, rc;
	struct check *c;
	char err[512];
	int i;

	if (at < 0)
		return options__status(at);
	files = argc - at;
	if (files < 2 || files > BASES + 1) {
		complain("check: which profile files?  Name one baseline or "
			 "up to %d, and the new one", BASES);
		return EXIT_USAGE;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		complain("check: out of memory");
		return EXIT_CANNOT_TELL;
	}
	c->metric = metric;
	c->tolerance = tolerance / 100;
	c->nbases = files - 1;
	for (i = 0; i < files; i++) {
		if (profile__view(i < files - 1 ? &c->bases[i] : &c->new,
				  argv[at + i], raw, err, sizeof(err))) {
			complain("check: %s", err);
			release(c, i);
			return EXIT_CANNOT_TELL;
		}
	}
	rc = check(c, argv + at, json, all);
	release(c, files);
	return finish_stdout(rc);
}
