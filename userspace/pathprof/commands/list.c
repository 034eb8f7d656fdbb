// SPDX-License-Identifier: GPL-2.0-only
/*
 * pathprof list: the stages in their order, and whether this kernel has
 * them.  Loads nothing; works unprivileged.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/tool.h"
#include "record/session.h"

static int by_order(const void *a, const void *b, void *arg)
{
	const struct profile *p = arg;
	const struct profile_stage *x = &p->stages[*(const int *)a];
	const struct profile_stage *y = &p->stages[*(const int *)b];
	/* Receive, transmit, then what belongs to both. */
	int dx = x->dir == DIR_ANY ? 3 : x->dir;
	int dy = y->dir == DIR_ANY ? 3 : y->dir;

	if (dx != dy)
		return dx - dy;
	if (x->order != y->order)
		return x->order - y->order;
	return *(const int *)a - *(const int *)b;
}

static void print_table(struct profile *p)
{
	int ids[PATHPROF_STAGE_MAX], n = 0, i;
	const struct profile_stage *s;
	int have = 0;

	for (i = 0; i < PATHPROF_STAGE_MAX; i++)
		if (p->stages[i].known)
			ids[n++] = i;
	qsort_r(ids, n, sizeof(*ids), by_order, p);
	printf("DIR  STAGE     HERE  KIND  MEANING\n");
	for (i = 0; i < n; i++) {
		s = &p->stages[ids[i]];
		have += s->available;
		printf("%-4s %-9s %-5s %-5s %.54s\n", dir_name(s->dir),
		       s->name, s->available ? "yes" : "no",
		       kind_name(s->kind), s->meaning);
	}
	printf("\n%d of %d stages on Linux %.40s\n", have, n, p->release);
	for (i = 0; i < (int)p->nhooks; i++)
		if (p->hooks[i].state == HOOK_MISSING)
			printf("no %s:%s (%s)\n", p->hooks[i].type,
			       p->hooks[i].name, p->hooks[i].why);
}

int cmd_list(const struct command *self, int argc, char **argv)
{
	bool json = false;
	const struct option_def options[] = {
		{ 0, "json", OPT_FLAG, &json, 0, 0, NULL,
		  "print as JSON: a profile without paths" },
		{ 0 }
	};
	int at = options__read(self, options, argc, argv), rc;
	struct profile p;
	char err[512];

	if (at < 0)
		return options__status(at);
	if (at < argc) {
		complain("list: takes no words, not \"%s\"", argv[at]);
		return EXIT_USAGE;
	}
	profile__init(&p);
	rc = session__probe(&p, err, sizeof(err));
	if (rc) {
		complain("list: %s", err);
		return exit_status(rc);
	}
	if (json)
		rc = print_json(profile__to_json(&p), JSON_INDENT(1));
	else
		print_table(&p);
	profile__free(&p);
	return finish_stdout(rc ? EXIT_FAILED : EXIT_GOOD);
}
