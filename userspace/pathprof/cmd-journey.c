// SPDX-License-Identifier: GPL-2.0-only
/*
 * pathprof journey: one packet of an events file from its first stage to its
 * end, or a list of all.
 */
#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "journey.h"
#include "journey-trace.h"
#include "path-id.h"
#include "pathprof-tool.h"
#include "render.h"

struct item {
	const struct journey *j;
	uint64_t total_ns;
};

static void path_words(const struct journeys *all, const struct journey *j,
		       const struct journey_sum *sum, char *out, size_t size)
{
	struct profile_path path = { .key = sum->path };

	render__words(&all->profile, &path, out, size);
	if (!j->ended && strlen(out) < size)
		snprintf(out + strlen(out), size - strlen(out), " (end lost)");
}

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

static void flow_text(const struct journey *j, char *out, size_t size)
{
	const char *open = j->family == 6 ? "[" : "";
	const char *close = j->family == 6 ? "]" : "";

	if (!j->flow)
		snprintf(out, size, "(addresses lost)");
	else
		snprintf(out, size, "%s%s%s:%u >%s%s%s%s:%u", open, j->source,
			 close, j->source_port,
			 strlen(j->source) + strlen(j->destination) > 50 ?
			 "\n  " : " ", open, j->destination, close,
			 j->destination_port);
}

/* The packets of the path asked for; the caller frees them. */
static struct item *choose(const struct journeys *all, const char *path,
			   size_t *n)
{
	struct item *items = calloc(all->n + 1, sizeof(*items));
	struct journey_sum sum;
	char words[RENDER_WORDS];
	size_t i;

	*n = 0;
	for (i = 0; items && i < all->n; i++) {
		journey__sum(all, &all->list[i], &sum);
		path_words(all, &all->list[i], &sum, words, sizeof(words));
		if (!path || has_words(words, path))
			items[(*n)++] = (struct item){ &all->list[i],
							sum.total_ns };
	}
	return items;
}

static int by_time(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return x->j->number < y->j->number ? -1 : 1;
}

static const struct {
	enum journey_relation relation;
	const char *title, *key;
} relations[] = {
	{ REL_MERGED_INTO, "merged into packet", "merged_into" },
	{ REL_MERGED_HERE, "merged into it: packets", "merged_here" },
	{ REL_SENT_AS, "sent from here as packet", "sent_as" },
	{ REL_RECEIVED_AS, "received here as packets", "received_as" },
};

#define NRELATIONS (sizeof(relations) / sizeof(*relations))
#define SHOWN 8

static void print_relations(const struct journeys *all,
			    const struct journey *j)
{
	size_t i, k, n;

	for (k = 0; k < NRELATIONS; k++) {
		for (i = n = 0; i < all->n; i++) {
			if (journey__relation(j, &all->list[i]) !=
			    relations[k].relation)
				continue;
			if (!n++)
				printf("  %s", relations[k].title);
			if (n <= SHOWN)
				printf(" %u", all->list[i].number);
		}
		if (n > SHOWN)
			printf(" and %zu more", n - SHOWN);
		if (n)
			putchar('\n');
	}
}

#define WIDTH	79
#define LEARNED	46	/* column of the stage, and of what was learned */

static void print_learned(uint32_t bits, const char *(*name)(unsigned int),
			  size_t *column)
{
	unsigned int bit;

	for (bit = 0; bit < 32; bit++) {
		if (!(bits >> bit & 1) || !name(bit))
			continue;
		if (*column + 2 + strlen(name(bit)) > WIDTH) {
			printf("\n%*s", LEARNED, "");
			*column = LEARNED;
		}
		*column += printf("  %s", name(bit));
	}
}

/* It comes to another device; NAT and tunnels show in the addresses. */
static void print_place(const struct journey *j,
			const struct journey_place *place)
{
	const char *open = j->family == 6 ? "[" : "";
	const char *close = j->family == 6 ? "]" : "";
	char name[40];

	printf("-- %s, interface %u, network namespace %u\n",
	       printable(place->device, name, sizeof(name)), place->ifindex,
	       place->netns);
	printf("   %s%s%s:%u > %s%s%s:%u\n", open, place->source, close,
	       place->source_port, open, place->destination, close,
	       place->destination_port);
}

static bool has_places(const struct journey *j)
{
	size_t i, n = 0;

	for (i = 0; i < j->nevents; i++)
		n += j->events[i].place != NULL;
	return n > 1;
}

/* The stage an event enters, and how long it was until the next one. */
static void print_event(const struct journeys *all, const struct journey *j,
			size_t i, const char *mean, bool places)
{
	const struct journey_event *e = &j->events[i];
	const struct profile_stage *s = &all->profile.stages[e->stage];
	char name[32], next[24] = "";
	size_t column = LEARNED;

	if (e->place && places)
		print_place(j, e->place);
	if (e->lost)
		printf("             (%u events lost)\n", e->lost);
	if (i + 1 < j->nevents)
		snprintf(next, sizeof(next), "%llu",
			 (unsigned long long)e[1].took_ns);
	printf("%12llu %11s %9s  %-4s %3u  ", (unsigned long long)e->ns, next,
	       mean, i + 1 < j->nevents ? kind_name(s->kind) : "", e->cpu);
	column += printf("%s%s", e->again ? "again " : "",
			 printable(s->name, name, sizeof(name)));
	print_learned(e->flags, flag_name, &column);
	print_learned(e->facts, fact_name, &column);
	putchar('\n');
}

/* The mean time of a stage on this path, by the first event that enters it. */
static const char *mean_text(const struct profile_path *path,
			     unsigned int at, char out[24])
{
	*out = 0;
	if (path && path->sum.packets)
		snprintf(out, 24, "%llu",
			 (unsigned long long)(path->sum.stage_ns[at] /
					      path->sum.packets));
	return out;
}

static void print_events(const struct journeys *all, const struct journey *j,
			 const struct journey_sum *sum)
{
	const struct profile_path *path = journey__path(all, sum);
	bool places = has_places(j);
	unsigned int at = 0, bit;
	char mean[24];
	size_t i;

	printf("\n      AT, ns     NEXT IN   OF PATH  KIND CPU  STAGE\n");
	for (i = 0; i < j->nevents; i++) {
		mean[0] = 0;
		if (at < sum->path.n && !j->events[i].again &&
		    j->events[i].stage == sum->path.stages[at]) {
			at++;
			if (at < sum->path.n)
				mean_text(path, at - 1, mean);
		}
		print_event(all, j, i, mean, places);
	}
	if (j->facts)
		printf("\nWhy:\n");
	for (bit = 0; bit < 32; bit++)
		if (j->facts >> bit & 1 && fact_name(bit))
			printf("  %-22s %s\n", fact_name(bit),
			       fact_meaning(bit));
}

static void print_state(const struct journey *j)
{
	size_t column = 0;
	char text[48];
	int i;

	for (i = 0; j->has_state && i < STATE_MAX; i++) {
		snprintf(text, sizeof(text), "  %s %u", state_name(i),
			 j->state[i]);
		if (column && column + strlen(text) > WIDTH) {
			putchar('\n');
			column = 0;
		}
		column += printf("%s", text);
	}
	if (column)
		putchar('\n');
}

static json_t *state_json(const struct journey *j)
{
	json_t *o = j->has_state ? json_object() : NULL;
	int i;

	for (i = 0; o && i < STATE_MAX; i++)
		json_object_set_new(o, state_name(i), json_integer(j->state[i]));
	return o;
}

static void print_journey(const struct journeys *all, const struct journey *j)
{
	char words[RENDER_WORDS], flow[120], name[40];
	struct journey_sum sum;

	journey__sum(all, j, &sum);
	path_words(all, j, &sum, words, sizeof(words));
	flow_text(j, flow, sizeof(flow));
	printf("Packet %u: %s\n", j->number, words);
	printf("  %s\n", flow);
	printf("  %u bytes in %u segment%s, sequence %u\n", j->bytes,
	       j->segments, j->segments == 1 ? "" : "s", j->seq);
	printf("  %.9f s after the start", j->start_ns / 1e9);
	if (j->flow)
		printf(", interface %u, network namespace %u", j->ifindex,
		       j->netns);
	putchar('\n');
	print_relations(all, j);
	print_state(j);
	if (j->lost)
		printf("  %u of its events were lost: what follows has gaps\n",
		       j->lost);
	print_events(all, j, &sum);
	printf("\nEnd: %s", j->ended ? end_name(j->end) : "not kept");
	if (j->end == END_DROPPED)
		printf(" (%s, reason %u)",
		       printable(profile__reason(&all->profile, j->reason),
				 name, sizeof(name)), j->reason);
	printf(" after %llu ns: %llu work, %llu waiting.\n",
	       (unsigned long long)sum.total_ns,
	       (unsigned long long)sum.work_ns,
	       (unsigned long long)sum.wait_ns);
	if (sum.own_ns)
		printf("The other %llu ns were pathprof's, between two "
		       "clocks.\n", (unsigned long long)sum.own_ns);
	printf("OF PATH: the mean of this stage of all packets of the path.  "
	       "Times are as\nmeasured (--raw of pathprof report).\n");
}

static void print_list(const struct journeys *all, const struct item *items,
		       size_t n)
{
	char a[8], b[8], c[8], d[8], words[RENDER_WORDS];
	char row[200], line[80], release[25];
	const struct journey *j;
	struct journey_sum sum;
	size_t i;

	printf("pathprof  Linux %s  %zu packets, %llu events, %llu events "
	       "lost\n\n", printable(all->profile.release, release,
				     sizeof(release)), all->n,
	       (unsigned long long)all->nevents,
	       (unsigned long long)all->lost);
	printf("  PACKET   START s  TOTAL   WORK   WAIT  BYTES   PORTS       "
	       "PATH\n");
	for (i = 0; i < n; i++) {
		j = items[i].j;
		journey__sum(all, j, &sum);
		path_words(all, j, &sum, words, sizeof(words));
		snprintf(row, sizeof(row), "%8u %9.6f %6s %6s %6s %6s  "
			 "%5u>%-5u  %s", j->number, j->start_ns / 1e9,
			 human(sum.total_ns, a), human(sum.work_ns, b),
			 human(sum.wait_ns, c), human(j->bytes, d),
			 j->source_port, j->destination_port, words);
		printf("%s\n", printable(row, line, sizeof(line)));
	}
}

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
	struct journey_sum sum;
	char words[RENDER_WORDS], id[PATH_ID];

	journey__sum(all, j, &sum);
	path_words(all, j, &sum, words, sizeof(words));
	return json_pack("{s:I s:s s:s s:s s:i s:s s:i s:I s:I s:I s:I s:I s:I s:I "
			 "s:I s:I s:I s:s? s:i s:o s:o s:I s:o*}",
			 "packet", (json_int_t)j->number, "path", words,
			 "path_id", path__id(&all->profile, &sum.path, id),
			 "source", j->source, "source_port", j->source_port,
			 "destination", j->destination, "destination_port",
			 j->destination_port, "seq", (json_int_t)j->seq,
			 "ifindex", (json_int_t)j->ifindex,
			 "netns", (json_int_t)j->netns,
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
	return json_pack("{s:s s:I s:I s:s s:i s:s s:i}",
			 "device", place->device,
			 "ifindex", (json_int_t)place->ifindex,
			 "netns", (json_int_t)place->netns,
			 "source", place->source,
			 "source_port", place->source_port,
			 "destination", place->destination,
			 "destination_port", place->destination_port);
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

static int items_json(const struct journeys *all, const struct item *items,
		      size_t n, bool list)
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

/* The packet shown first: the one of that number, the slowest, the median. */
static int pick(struct item *items, size_t n, const char *number,
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
	struct item *items;
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
		rc = items_json(all, items, list ? n : 1, list);
	else if (list)
		print_list(all, items, n);
	else
		print_journey(all, items[0].j);
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
		  "the packet that took longest; a list in that order" },
		{ 0, "path", OPT_TEXT, &wish.path, 0, 0, "WORDS",
		  "only of this path, as \"rx fast data\"; the median one" },
		{ 0, "list", OPT_FLAG, &wish.list, 0, 0, NULL,
		  "a line for each packet" },
		{ 0, "json", OPT_FLAG, &wish.json, 0, 0, NULL,
		  "print as JSON" },
		{ 0, "trace", OPT_TEXT, &wish.trace, 0, 0, "TRACKS",
		  "all packets as a Chrome trace, by stage or cpu" },
		{ 0, "pcapng", OPT_FLAG, &wish.pcapng, 0, 0, NULL,
		  "all packets that have captured bytes, as pcapng" },
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
