// SPDX-License-Identifier: GPL-2.0-only
/* One packet of an events file, or a list of them, as text. */
#include <stdio.h>
#include <string.h>
#include "base/tool.h"
#include "journey/view.h"
#include "profile/label.h"

void journey__words(const struct journeys *all, const struct journey *j,
		    const struct journey_sum *sum, char *out, size_t size)
{
	struct profile_path path = { .key = sum->path };

	path__words(&all->profile, &path, out, size);
	if (!j->ended && strlen(out) < size)
		snprintf(out + strlen(out), size - strlen(out), " (end lost)");
}

static void flow_text(const struct journey *j, char *out, size_t size)
{
	const struct journey_flow *f = &j->flow;
	const char *open = j->family == 6 ? "[" : "";
	const char *close = j->family == 6 ? "]" : "";

	if (!j->has_flow)
		snprintf(out, size, "(addresses lost)");
	else
		snprintf(out, size, "%s%s%s:%u >%s%s%s%s:%u", open, f->source,
			 close, f->source_port,
			 strlen(f->source) + strlen(f->destination) > 50 ?
			 "\n  " : " ", open, f->destination, close,
			 f->destination_port);
}

static const struct {
	enum journey_relation relation;
	const char *title;
} relations[] = {
	{ REL_MERGED_INTO, "merged into packet" },
	{ REL_MERGED_HERE, "merged into it: packets" },
	{ REL_SENT_AS, "sent from here as packet" },
	{ REL_RECEIVED_AS, "received here as packets" },
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
	const struct journey_flow *f = &place->flow;
	char name[40];

	printf("-- %s, interface %u, network namespace %u\n",
	       printable(place->device, name, sizeof(name)), f->ifindex,
	       f->netns);
	printf("   %s%s%s:%u > %s%s%s:%u\n", open, f->source, close,
	       f->source_port, open, f->destination, close,
	       f->destination_port);
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

void journey__print(const struct journeys *all, const struct journey *j)
{
	char words[PATH_WORDS], flow[120], name[40];
	struct journey_sum sum;

	journey__sum(all, j, &sum);
	journey__words(all, j, &sum, words, sizeof(words));
	flow_text(j, flow, sizeof(flow));
	printf("Packet %u: %s\n", j->number, words);
	printf("  %s\n", flow);
	printf("  %u bytes in %u segment%s, sequence %u\n", j->bytes,
	       j->segments, j->segments == 1 ? "" : "s", j->seq);
	printf("  %.9f s after the start", j->start_ns / 1e9);
	if (j->has_flow)
		printf(", interface %u, network namespace %u", j->flow.ifindex,
		       j->flow.netns);
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

void journey__print_list(const struct journeys *all,
			 const struct journey_item *items, size_t n)
{
	char a[8], b[8], c[8], d[8], words[PATH_WORDS];
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
		journey__words(all, j, &sum, words, sizeof(words));
		snprintf(row, sizeof(row), "%8u %9.6f %6s %6s %6s %6s  "
			 "%5u>%-5u  %s", j->number, j->start_ns / 1e9,
			 human(sum.total_ns, a), human(sum.work_ns, b),
			 human(sum.wait_ns, c), human(j->bytes, d),
			 j->flow.source_port, j->flow.destination_port, words);
		printf("%s\n", printable(row, line, sizeof(line)));
	}
}
