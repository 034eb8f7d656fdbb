// SPDX-License-Identifier: GPL-2.0-only
/*
 * pathprof flame: a profile as one SVG picture without scripts: a flame graph
 * of directions, kinds of packets and stages by work time, and below it the
 * stages of the mean packet of the most expensive paths, one after the other.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/tool.h"
#include "view/render.h"

#define WIDTH		1200.0
#define ROW		18
#define LEFT		10
#define TOP		40
#define WATERFALLS	12
#define FRAME		260.0	/* pixels left of a waterfall */

/* Text for XML: control characters and markup made harmless. */
static void put_text(const char *text)
{
	char clean[160];
	const char *c;

	printable(text, clean, sizeof(clean));
	for (c = clean; *c; c++) {
		switch (*c) {
		case '<':
			fputs("&lt;", stdout);
			break;
		case '>':	/* XML forbids "]]>" in a text */
			fputs("&gt;", stdout);
			break;
		case '&':
			fputs("&amp;", stdout);
			break;
		case '"':
			fputs("&quot;", stdout);
			break;
		default:
			putchar(*c);
		}
	}
}

/* Warm colours for work, cold ones for waiting; one colour per name. */
static unsigned int colour(const char *name, bool wait)
{
	unsigned int h = 2166136261u;

	while (*name)
		h = (h ^ (unsigned char)*name++) * 16777619u;
	return wait ? 0x8090c0 + (h & 0x1f) * 0x010100 :
		      0xe06020 + (h & 0x1f) + (h >> 8 & 0x7f) * 0x100;
}

static void box(double x, double y, double w, const char *name, bool wait,
		const char *note)
{
	/* In a damaged file a stage may exceed all work, and overflow an int. */
	int fits = w > 14 ? fmin((w - 4) / 6.6, 79) : 0;
	char cut[80];

	if (w < 0.2)
		return;
	printf("<g><title>");
	put_text(name);
	printf(": %s</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
	       "height=\"%d\" fill=\"#%06x\"/>", note, x, y, w, ROW - 1,
	       colour(name, wait));
	if (fits) {
		snprintf(cut, sizeof(cut), "%.*s", fits, name);
		printf("<text x=\"%.1f\" y=\"%.1f\">", x + 3, y + 13);
		put_text(cut);
		printf("</text>");
	}
	printf("</g>\n");
}

static void note_of(char *out, size_t size, double ns, double all)
{
	char a[8];

	snprintf(out, size, "%s ns, %.2f %%", human(ns, a),
		 all ? 100 * ns / all : 0);
}

/* Stages of one path, work only, above its own box. */
static void flame_path(const struct profile *p,
		       const struct profile_path *path, double x, double y,
		       double scale, double all)
{
	const struct profile_stage *s;
	char words[PATH_WORDS], note[64];
	size_t i;

	path__words(p, path, words, sizeof(words));
	note_of(note, sizeof(note), path->sum.work_ns, all);
	box(x, y, path->sum.work_ns * scale, words, false, note);
	for (i = 0; i < path->key.n; i++) {
		s = &p->stages[path->key.stages[i] % PATHPROF_STAGE_MAX];
		if (s->kind == KIND_WAIT)
			continue;
		note_of(note, sizeof(note), path->sum.stage_ns[i], all);
		box(x, y - ROW, path->sum.stage_ns[i] * scale, s->name, false,
		    note);
		x += path->sum.stage_ns[i] * scale;
	}
}

static void flame(const struct profile *p, const size_t *order, double all)
{
	static const char *const titles[] = { "any", "received", "sent" };
	double x = LEFT, scale = all ? (WIDTH - 2 * LEFT) / all : 0, sum;
	char note[64];
	unsigned int dir;
	size_t i;

	for (dir = DIR_RX; dir <= DIR_TX; dir++) {
		for (sum = 0, i = 0; i < p->npaths; i++)
			if (p->paths[i].key.dir == dir)
				sum += p->paths[i].sum.work_ns;
		note_of(note, sizeof(note), sum, all);
		box(x, TOP + 2 * ROW, sum * scale, titles[dir], false, note);
		for (i = 0; i < p->npaths; i++) {
			if (p->paths[order[i]].key.dir != dir)
				continue;
			flame_path(p, &p->paths[order[i]], x, TOP + ROW, scale,
				   all);
			x += p->paths[order[i]].sum.work_ns * scale;
		}
	}
}

/* The mean packet.  Long waits are cut: a log scale would hide differences. */
static void waterfall(const struct profile *p,
		      const struct profile_path *path, double y)
{
	const struct path_value *v = &path->sum;
	double x = LEFT + FRAME, mean, w, scale;
	const struct profile_stage *s;
	char words[PATH_WORDS], note[64];
	size_t i;

	path__words(p, path, words, sizeof(words));
	printf("<text x=\"%d\" y=\"%.1f\">", LEFT, y + 13);
	put_text(words);
	printf("</text>\n");
	if (!v->packets || !v->work_ns)
		return;
	scale = (WIDTH - FRAME - 2 * LEFT) * 0.7 * v->packets / v->work_ns;
	for (i = 0; i < path->key.n; i++) {
		s = &p->stages[path->key.stages[i] % PATHPROF_STAGE_MAX];
		mean = (double)v->stage_ns[i] / v->packets;
		w = s->kind == KIND_WAIT ? (mean > 0 ? 30 : 0) : mean * scale;
		if (x + w > WIDTH - LEFT)
			w = WIDTH - LEFT - x;
		note_of(note, sizeof(note), mean,
			(double)v->work_ns / v->packets);
		box(x, y, w, s->name, s->kind == KIND_WAIT, note);
		x += w;
	}
}

static void draw(const struct profile *p, const size_t *order)
{
	size_t n = p->npaths < WATERFALLS ? p->npaths : WATERFALLS, i;
	double height = TOP + 4 * ROW + 40 + n * (ROW + 6) + 20;
	struct profile_totals t;

	profile__totals(p, &t);
	printf("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	       "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
	       "height=\"%.0f\" font-family=\"monospace\" font-size=\"11\">\n"
	       "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
	       "<text x=\"%d\" y=\"24\" font-size=\"14\">Work time of ",
	       WIDTH, height, LEFT);
	printf("%llu packets, Linux ", (unsigned long long)t.packets);
	put_text(p->release);
	printf("</text>\n");
	flame(p, order, t.work_ns);
	printf("<text x=\"%d\" y=\"%d\" font-size=\"14\">The mean packet of "
	       "the most expensive paths (waiting is blue, not to scale)</text>\n",
	       LEFT, TOP + 4 * ROW + 22);
	for (i = 0; i < n; i++)
		waterfall(p, &p->paths[order[i]],
			  TOP + 4 * ROW + 40 + i * (ROW + 6.0));
	printf("</svg>\n");
}

int cmd_flame(const struct command *self, int argc, char **argv)
{
	bool raw = false;
	const struct option_def options[] = { RAW_OPTION(&raw), { 0 } };
	int at = options__read(self, options, argc, argv), rc = EXIT_GOOD;
	struct profile p;
	char err[512];
	size_t *order;

	if (at < 0)
		return options__status(at);
	if (argc - at != 1) {
		complain("flame: which profile file?  Name one");
		return EXIT_USAGE;
	}
	if (profile__view(&p, argv[at], raw, err, sizeof(err))) {
		complain("flame: %s", err);
		return EXIT_FAILED;
	}
	order = path__order(&p, SORT_COST);
	if (order) {
		draw(&p, order);
	} else {
		complain("flame: out of memory");
		rc = EXIT_FAILED;
	}
	free(order);
	profile__free(&p);
	return finish_stdout(rc);
}
