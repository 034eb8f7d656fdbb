// SPDX-License-Identifier: GPL-2.0-only
/*
 * pathprof journey: one packet of an events file from its first stage to its
 * end, or a list of all.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/tool.h"
#include "journey/journey.h"
#include "journey/trace.h"
#include "journey/view.h"
#include "view/render.h"

/*
 * Does a text have all words of another, in any order?  "drop" matches every
 * reason.
 */
static bool has_words(const char *text, const char *wanted)
{
	const char *at, *s;
	size_t len;

	for (s = wanted; *s; s += len) {
		s += strspn(s, " ");
		len = strcspn(s, " ");
		for (at = text; len && *at; at += strcspn(at, " ")) {
			at += strspn(at, " ");
			if (strcspn(at, " :") == len && !strncmp(at, s, len))
				break;
			if (strcspn(at, " ") == len && !strncmp(at, s, len))
				break;
		}
		if (len && !*at)
			return false;
	}
	return true;
}

/* The packets of the path asked for; the caller frees them. */
static struct journey_item *choose(const struct journeys *all, const char *path,
			   size_t *n)
{
	struct journey_item *items = calloc(all->n + 1, sizeof(*items));
	struct journey_sum sum;
	char words[PATH_WORDS];
	size_t i;

	*n = 0;
	for (i = 0; items && i < all->n; i++) {
		journey__sum(all, &all->list[i], &sum);
		journey__words(all, &all->list[i], &sum, words, sizeof(words));
		if (!path || has_words(words, path))
			items[(*n)++] = (struct journey_item){ &all->list[i],
							sum.total_ns };
	}
	return items;
}

static int by_time(const void *a, const void *b)
{
	const struct journey_item *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return x->j->number < y->j->number ? -1 : 1;
}

/* The packet shown first: the one of that number, the slowest, the median. */
static int pick(struct journey_item *items, size_t n, const char *number,
		bool slowest)
{
	unsigned long wanted = number ? strtoul(number, NULL, 10) : 0;
	size_t i = slowest ? 0 : n / 2;

	if (number)
		for (i = 0; i < n && items[i].j->number != wanted; i++)
			;
	if (i >= n)
		return EXIT_FAILED;
	items[0] = items[i];
	return EXIT_GOOD;
}

struct wish {
	bool slowest, list, json, pcapng;
	const char *path, *number, *trace;
};

static int show(const struct journeys *all, const struct wish *wish)
{
	bool list = wish->list || !(wish->slowest || wish->path ||
				    wish->number);
	struct journey_item *items;
	int rc = EXIT_GOOD;
	size_t n;

	items = choose(all, wish->path, &n);
	if (!items) {
		complain("journey: out of memory");
		return EXIT_FAILED;
	}
	if (wish->slowest || !list)
		qsort(items, n, sizeof(*items), by_time);
	if (!list)
		rc = pick(items, n, wish->number, wish->slowest);
	if (rc && wish->number)
		complain("journey: the file has no packet %s", wish->number);
	else if (rc)
		complain("journey: the file has no packet%s%s",
			 wish->path ? " of path " : "",
			 wish->path ? wish->path : "");
	else if (wish->json)
		rc = journey__print_json(all, items, list ? n : 1, list);
	else if (list)
		journey__print_list(all, items, n);
	else
		journey__print(all, items[0].j);
	free(items);
	return rc;
}

/* The whole file in the format of another tool. */
static int convert(const struct journeys *all, const struct wish *wish)
{
	int rc = 0;

	if (wish->trace) {
		rc = journeys__trace(all, *wish->trace == 'c' ? TRACKS_CPU :
				     TRACKS_STAGE);
		if (rc)
			complain("journey: out of memory");
	} else if (!journeys__pcapng(all)) {
		complain("journey: no bytes of packets in this file; record "
			 "with --capture N");
		rc = -ENOENT;
	}
	return rc ? EXIT_FAILED : EXIT_GOOD;
}

static bool is_number(const char *text)
{
	return *text && strspn(text, "0123456789") == strlen(text) &&
	       strlen(text) < 11;
}

int cmd_journey(const struct command *self, int argc, char **argv)
{
	struct wish wish = {};
	const struct option_def options[] = {
		{ 0, "slowest", OPT_FLAG, &wish.slowest, 0, 0, NULL,
		  "show the slowest packet; with --list: slowest first" },
		{ 0, "path", OPT_TEXT, &wish.path, 0, 0, "WORDS",
		  "only this path, as \"rx fast data\"; shows the median" },
		{ 0, "list", OPT_FLAG, &wish.list, 0, 0, NULL,
		  "print one line for each packet" },
		{ 0, "json", OPT_FLAG, &wish.json, 0, 0, NULL,
		  "print as JSON" },
		{ 0, "trace", OPT_TEXT, &wish.trace, 0, 0, "TRACKS",
		  "write a Chrome trace, one track per stage or cpu" },
		{ 0, "pcapng", OPT_FLAG, &wish.pcapng, 0, 0, NULL,
		  "write captured bytes as pcapng" },
		{ 0 }
	};
	const char *words[2] = {};
	struct journeys all;
	char err[512];
	int at, rc, n = 0;

	/* Options may stand on either side of the words. */
	for (;;) {
		at = options__read(self, options, argc, argv);
		if (at < 0)
			return options__status(at);
		if (at >= argc)
			break;
		if (n == 2) {
			complain("journey: one file and one packet, not \"%s\"",
				 argv[at]);
			return EXIT_USAGE;
		}
		words[n++] = argv[at];
		argc -= at + 1;
		argv += at + 1;
	}
	if (!n) {
		complain("journey: which events file?  Name one");
		return EXIT_USAGE;
	}
	wish.number = words[1];
	if (wish.number && (!is_number(wish.number) || wish.slowest ||
			    wish.list || wish.path)) {
		complain(is_number(wish.number) ?
			 "journey: packet %s, or --slowest, --path, --list" :
			 "journey: a packet is a number, not \"%s\"",
			 wish.number);
		return EXIT_USAGE;
	}
	if (wish.trace && strcmp(wish.trace, "stage") &&
	    strcmp(wish.trace, "cpu")) {
		complain("journey: --trace takes stage or cpu, not \"%s\"",
			 wish.trace);
		return EXIT_USAGE;
	}
	if ((wish.trace || wish.pcapng) &&
	    (wish.number || wish.slowest || wish.list || wish.path ||
	     wish.json || (wish.trace && wish.pcapng))) {
		complain("journey: --trace and --pcapng are of the whole file, "
			 "without another option");
		return EXIT_USAGE;
	}
	if (wish.pcapng && isatty(STDOUT_FILENO)) {
		complain("journey: --pcapng writes binary data: redirect it to "
			 "a file");
		return EXIT_USAGE;
	}
	if (journeys__read(&all, words[0], err, sizeof(err))) {
		complain("journey: %s", err);
		return EXIT_FAILED;
	}
	rc = wish.trace || wish.pcapng ? convert(&all, &wish) :
	     show(&all, &wish);
	journeys__free(&all);
	return finish_stdout(rc);
}
