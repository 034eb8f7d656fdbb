// SPDX-License-Identifier: GPL-2.0-only
/*
 * Draws the full screen of `pathprof top`: rates and the reasons for the slow
 * path, the rows of the table, the drops, and the pages behind keys.  Text that
 * does not fit a line goes on in the next one.
 */
#include <curses.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "base/tool.h"
#include "profile/explain.h"
#include "profile/stats.h"
#include "view/screen.h"
#include "view/summary.h"

#define WIDE	110	/* columns, for more of them in the table */
#define DROPS	3	/* lines of the section on the first page */

/* Words into a place of the screen that ends at a line; see put(). */
struct pen {
	int y, left, end;
};

/* A word that is never cut: it goes to the next line if it does not fit. */
static void put(struct pen *pen, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
static void put(struct pen *pen, const char *format, ...)
{
	char text[LABEL], clean[LABEL], *rest, *space;
	va_list args;
	int room;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	printable(text, clean, sizeof(clean));
	if (getcury(stdscr) != pen->y)
		move(pen->y, pen->left);
	room = COLS - 1 - getcurx(stdscr);
	rest = clean;
	if ((int)strlen(rest) > room &&
	    (int)strlen(rest) < COLS - pen->left) {
		/* All of it fits a line of its own. */
		rest += strspn(rest, " ");
		if (++pen->y >= pen->end)
			return;
		move(pen->y, pen->left);
	}
	while (*rest) {
		room = COLS - 1 - getcurx(stdscr);
		if ((int)strlen(rest) <= room) {
			addstr(rest);
			return;
		}
		/* The last blank that leaves a part that fits. */
		for (space = rest + room; space > rest && *space != ' ';
		     space--)
			;
		if (space == rest)
			space = rest + room;
		addnstr(rest, space - rest);
		rest = space + (*space == ' ');
		if (++pen->y >= pen->end)
			return;
		move(pen->y, pen->left);
	}
}

static void new_line(struct pen *pen)
{
	if (++pen->y < pen->end)
		move(pen->y, 0);
}

static void draw_bar(int y, const char *text)
{
	attron(A_REVERSE);
	mvhline(y, 0, ' ', COLS);
	/* The last cell of the last line would scroll the screen. */
	mvaddnstr(y, 0, text, COLS - 1);
	attroff(A_REVERSE);
}

static void put_rates(struct pen *pen, const struct profile *p,
		      const struct profile *total, const struct live *live,
		      const struct summary *sum)
{
	char a[8], b[8], release[12], addr[56];
	struct profile_totals all;

	profile__totals(total, &all);
	snprintf(release, sizeof(release), "%.11s", p->release);
	release[strspn(release, "0123456789.")] = 0;
	put(pen, "Linux %s  ", release);
	if (live->in_bursts)
		put(pen, "bursts %.3g %%  ", live->budget);
	else if (p->sample == 1)
		put(pen, "every packet  ");
	else
		put(pen, "1 in %u packets  ", p->sample);
	attron(A_BOLD);
	put(pen, "%s pkt/s  %s bit/s  ", human(sum->packets, a),
	    human(sum->bits, b));
	attroff(A_BOLD);
	put(pen, "own %.1f %%  ", live->own);
	if (all.lost + all.missed)
		attron(A_BOLD);
	put(pen, "lost %llu  ", (unsigned long long)all.lost);
	attroff(A_BOLD);
	put(pen, "drops %llu", (unsigned long long)all.dropped);
	if (p->port)
		put(pen, "  port %u", p->port);
	if (*p->addr)
		put(pen, "  addr %s", printable(p->addr, addr, sizeof(addr)));
	if (*p->filter)
		put(pen, "  %s", p->filter);
	new_line(pen);
}

static void put_age(struct pen *pen, const struct screen *s,
		    const struct profile *p, const struct live *live,
		    const struct summary *sum)
{
	put(pen, "%s %.1f s: %llu packets",
	    s->interval ? "Last" : "Totals of", p->duration_ns / 1e9,
	    (unsigned long long)sum->totals.packets);
	if (live->in_bursts) {
		put(pen, " in %llu burst%s of %.2g s",
		    (unsigned long long)p->counters[CN_BURSTS],
		    p->counters[CN_BURSTS] == 1 ? "" : "s",
		    p->open_ns / 1e9);
		if (live->age >= 0)
			put(pen, ", last %.1f s ago", live->age);
	}
	put(pen, ", every %.3g s", live->interval);
	new_line(pen);
}

static void put_slow(struct pen *pen, const struct summary *sum)
{
	uint64_t data = sum->fast + sum->slow;
	size_t i;

	if (!data)
		return;
	put(pen, "Received data: fast %.0f %%, slow %.0f %%",
	    100.0 * sum->fast / data, 100.0 * sum->slow / data);
	for (i = 0; i < sum->nreasons; i++)
		put(pen, "%s %s %.0f %%", i ? "," : ":",
		    fact_name(sum->reasons[i].fact),
		    100.0 * sum->reasons[i].packets / sum->slow);
	new_line(pen);
}

/* What went wrong with the recording, and only that. */
static void put_troubles(struct pen *pen, const struct profile *total)
{
	struct profile_totals all;
	const char *comma = "";
	unsigned int i;

	profile__totals(total, &all);
	if (!all.lost && !all.missed)
		return;
	put(pen, "Lost: ");
	for (i = 0; i < PATHPROF_COUNTER_MAX; i++) {
		if (!counter_name(i) || !counter_is_loss(i) ||
		    !total->counters[i])
			continue;
		put(pen, "%s%llu %s", comma,
		    (unsigned long long)total->counters[i], counter_name(i));
		comma = ", ";
	}
	for (i = 0; i < PATHPROF_END_MAX; i++) {
		if ((i != END_STALE && i != END_EVICTED) || !total->ends[i])
			continue;
		put(pen, "%s%llu %s", comma,
		    (unsigned long long)total->ends[i], end_name(i));
		comma = ", ";
	}
	if (all.missed)
		put(pen, "%s%llu hook calls skipped by the kernel", comma,
		    (unsigned long long)all.missed);
	new_line(pen);
}

static const char *heading(void)
{
	return COLS < WIDE ?
	       " COST% PKT/S BIT/S NS/PKT   P99  WAIT  " :
	       " COST% PKT/S BIT/S NS/PKT   P50   P99  WAIT PACKETS SEG/PKT  ";
}

static void draw_heading(const struct screen *s, int y)
{
	static const char *const words[] = {
		"COST%", "PKT/S", "BIT/S", "NS/PKT", "WAIT",
	};
	const char *text = heading(), *at = strstr(text, words[s->sort]);
	char line[128];

	snprintf(line, sizeof(line), "%s%s", text, group_name(s->by));
	draw_bar(y, line);
	if (at)
		mvchgat(y, at - text, strlen(words[s->sort]),
			A_REVERSE | A_BOLD | A_UNDERLINE, 0, NULL);
}

static void put_stages(struct pen *pen, const struct profile *p,
		       const struct group_row *r)
{
	const struct path_key *k = &r->path->key;
	double n = r->sum.packets ? r->sum.packets : 1;
	const struct profile_stage *stage;
	char a[8], name[32];
	unsigned int i;

	pen->left = 8;
	move(pen->y, 4);
	for (i = 0; i < k->n && i < PATH_STAGES; i++) {
		stage = profile__stage(p, k, i);
		put(pen, stage->kind == KIND_WAIT ? "%s(%s %s)" : "%s%s %s",
		    i ? "  " : "", printable(stage->name, name, sizeof(name)),
		    human(r->sum.stage_ns[i] / n, a));
	}
	pen->left = 0;
	new_line(pen);
}

static void put_row(struct pen *pen, const struct summary *sum,
		    const struct group_row *r, uint64_t work_ns, bool selected)
{
	double per_s = sum->seconds > 0 ? sum->weight / sum->seconds : 0;
	const struct path_value *v = &r->sum;
	double n = v->packets ? v->packets : 1;
	char a[8], b[8], c[8], d[8], e[8], f[8], line[128];

	snprintf(line, sizeof(line), "%c%5.1f %5s %5s %6s", selected ? '>' : ' ',
		 work_ns ? 100.0 * v->work_ns / work_ns : 0, human(v->packets * per_s, a),
		 human(v->bytes * 8 * per_s, b), human(v->work_ns / n, c));
	if (selected)
		attron(A_BOLD);
	mvaddstr(pen->y, 0, line);
	if (COLS >= WIDE)
		printw(" %5s", r->quantiles ?
		       human(path__quantile(v, 0.5), d) : "-");
	printw(" %5s %5s", r->quantiles ? human(path__quantile(v, 0.99), d) :
	       "-", human(v->wait_ns / n, e));
	if (COLS >= WIDE)
		printw(" %7s %7.1f", human(v->packets, f), v->segments / n);
	addstr("  ");
	pen->left = getcurx(stdscr) + 2 < COLS / 2 ? getcurx(stdscr) + 2 :
		    COLS / 2;
	put(pen, "%s", r->name);
	attroff(A_BOLD);
	pen->left = 0;
	new_line(pen);
}

#define REASON	640
#define REASON_AT	20	/* column; it goes on in the next line there */

static void reason_text(const struct profile *p, const struct drop *d,
			char out[REASON])
{
	char reason[80], stage[32] = "", place[480], where[480];

	if (*profile__reason(p, d->reason))
		printable(profile__reason(p, d->reason), reason,
			  sizeof(reason));
	else
		snprintf(reason, sizeof(reason), "reason %u", d->reason);
	if (d->stage)
		printable(p->stages[d->stage].name, stage, sizeof(stage));
	printable(drop__place(d->where, place, sizeof(place)), where,
		  sizeof(where));
	snprintf(out, REASON, "%s, %s%s%s%s%s", reason, dir_name(d->dir),
		 *stage ? " after " : "", stage, *where ? ", in " : "", where);
}

/* Lines that the section of drops takes on the first page; 0 without any. */
static int drop_lines(const struct profile *p)
{
	char text[REASON];
	struct drop *list;
	int lines = 1;
	size_t n, i;

	list = summary__drops(p, &n);
	for (i = 0; list && i < n && i < DROPS; i++) {
		reason_text(p, &list[i], text);
		lines += 1 + strlen(text) / (COLS - REASON_AT);
	}
	free(list);
	return n ? lines + (n > DROPS) : 0;
}

/* Most frequent first, at most so many; 0: as there is room. */
static void put_drops(struct pen *pen, const struct profile *p, size_t most)
{
	struct summary sum;
	char a[8], text[REASON];
	struct drop *list;
	double seconds;
	size_t n, i;

	summary__make(p, &sum);
	seconds = sum.seconds > 0 ? sum.seconds : 1;
	list = summary__drops(p, &n);
	for (i = 0; list && i < n && pen->y < pen->end && (!most || i < most);
	     i++) {
		pen->left = REASON_AT;
		put(pen, "%6llu %6s/s   ", (unsigned long long)list[i].packets,
		    human(list[i].packets * sum.weight / seconds, a));
		reason_text(p, &list[i], text);
		put(pen, "%s", text);
		pen->left = 0;
		new_line(pen);
	}
	if (most && i < n && pen->y < pen->end) {
		put(pen, "       %zu more reasons: press d", n - i);
		new_line(pen);
	}
	free(list);
}

static void draw_rows(struct screen *s, const struct profile *p, struct pen *pen,
		      const struct summary *sum)
{
	struct group g;
	size_t i;

	if (!group__possible(p, s->by))
		s->by = BY_PATH;
	if (group__make(p, s->by, s->sort, *s->filter ? s->filter : NULL, &g))
		return;
	s->nrows = g.n;
	if (s->selected >= g.n)
		s->selected = g.n ? g.n - 1 : 0;
	if (s->selected < s->first)
		s->first = s->selected;
	if (s->shown && s->selected >= s->first + s->shown)
		s->first = s->selected + 1 - s->shown;
	if (!g.n && *s->filter && p->npaths)
		put(pen, "No row contains \"%s\".", s->filter);
	else if (!g.n)
		put(pen, "No packet was sampled yet.");
	for (i = s->first; i < g.n && pen->y < pen->end; i++) {
		put_row(pen, sum, &g.rows[i], g.work_ns,
			i == s->selected);
		if (g.rows[i].path && pen->y < pen->end &&
		    (i == s->selected || s->all_stages))
			put_stages(pen, p, &g.rows[i]);
	}
	s->shown = i > s->first ? i - s->first : 1;
	group__free(&g);
}

/* The stages of the selected row with their meaning, then its facts. */
static void draw_detail(struct screen *s, const struct profile *p,
			struct pen *pen)
{
	const struct profile_stage *stage;
	const struct group_row *r;
	char a[8], name[64];
	struct group g;
	uint32_t facts;
	unsigned int i;
	double n;

	if (group__make(p, s->by, s->sort, *s->filter ? s->filter : NULL, &g))
		return;
	if (s->selected >= g.n) {
		put(pen, "Nothing is selected.");
		group__free(&g);
		return;
	}
	r = &g.rows[s->selected];
	n = r->sum.packets ? r->sum.packets : 1;
	attron(A_BOLD);
	put(pen, "%s", r->name);
	attroff(A_BOLD);
	new_line(pen);
	put(pen, "%llu packets, %llu segments, %llu bytes; work %s ns each",
	    r->sum.packets, r->sum.segments, r->sum.bytes,
	    human(r->sum.work_ns / n, a));
	put(pen, ", waiting %s ns", human(r->sum.wait_ns / n, a));
	if (r->quantiles) {
		put(pen, "; p50 %s", human(path__quantile(&r->sum, 0.5), a));
		put(pen, ", p99 %s", human(path__quantile(&r->sum, 0.99), a));
	}
	new_line(pen);
	new_line(pen);
	for (i = 0; r->path && i < r->path->key.n && pen->y < pen->end; i++) {
		stage = profile__stage(p, &r->path->key, i);
		pen->left = 26;
		put(pen, "  %-10s", printable(stage->name, name, sizeof(name)));
		put(pen, "%5s ns %-4s ", human(r->sum.stage_ns[i] / n, a),
		    stage->kind == KIND_WAIT ? "wait" : "");
		put(pen, "%s", printable(stage->meaning, name, sizeof(name)));
		pen->left = 0;
		new_line(pen);
	}
	facts = r->path ? explain__facts(&r->path->key) : 0;
	if (facts)
		new_line(pen);
	for (i = 0; i < 32 && pen->y < pen->end; i++) {
		if (!(facts >> i & 1) || !fact_name(i))
			continue;
		pen->left = 26;
		put(pen, "  %-23s ", fact_name(i));
		put(pen, "%s", fact_meaning(i));
		pen->left = 0;
		new_line(pen);
	}
	group__free(&g);
}

static const char *const help[] = {
	"COST%   share of all work time, percent",
	"PKT/S   packets a second, both directions; BIT/S: payload",
	"NS/PKT  mean work for a packet, ns; P50, P99: quantiles of it",
	"WAIT    mean time in queues, ns (K thousand, M million)",
	"In parentheses: the facts that separate rows of the same words.",
	"Line below a row: ns for each stage; (in parentheses) it waits.",
	"",
	"?  h       this page               Enter    details of the row",
	"arrows     select a row            /        only rows with a text",
	"g          group by the next       s > <    sort by the next column",
	"d          drops                   a        stages of all rows",
	"c          last interval or totals p f blank  pause",
	"r          reset the totals        + -      sample more, less",
	"Esc        back; no filter         q        quit",
};

static void draw_help(struct pen *pen)
{
	size_t i;

	for (i = 0; i < sizeof(help) / sizeof(*help); i++) {
		put(pen, "%s", help[i]);
		new_line(pen);
	}
}

static void draw_bottom(const struct screen *s)
{
	char line[160];

	if (s->typing)
		snprintf(line, sizeof(line), "/%s_   Enter keep  Esc clear",
			 s->filter);
	else if (*s->message)
		snprintf(line, sizeof(line), "%s", s->message);
	else
		snprintf(line, sizeof(line), s->page == PAGE_ROWS ?
			 "%s? help  / filter  g group  s sort  d drops  "
			 "p pause  r reset  + more  q quit" :
			 "%sEsc back  arrows next row  ? help  q quit",
			 s->paused ? "PAUSED  " : "");
	draw_bar(LINES - 1, line);
}

void screen__draw(struct screen *s, const struct profile *interval,
		  const struct profile *total, const struct live *live)
{
	const struct profile *p = s->interval ? interval : total;
	struct pen pen = { .end = LINES - 1 };
	int ndrops = 0;
	struct summary sum;
	char state[96];

	erase();
	summary__make(p, &sum);
	move(0, 0);
	put_rates(&pen, p, total, live, &sum);
	/* A few lines are for the rows, the account if there is room. */
	if (LINES > 9) {
		put_age(&pen, s, p, live, &sum);
		put_troubles(&pen, total);
		put_slow(&pen, &sum);
	}
	if (s->page == PAGE_ROWS && LINES > 15)
		ndrops = drop_lines(p);
	snprintf(state, sizeof(state), "By %s, sorted by %s%s%s%s",
		 group_name(s->by), sort_name(s->sort),
		 *s->filter ? ", with \"" : "", s->filter,
		 *s->filter ? "\"" : "");
	switch (s->page) {
	case PAGE_ROWS:
		put(&pen, "%s", state);
		new_line(&pen);
		draw_heading(s, pen.y);
		new_line(&pen);
		pen.end -= ndrops;
		draw_rows(s, p, &pen, &sum);
		if (!ndrops)
			break;
		pen.y = pen.end;
		pen.end = LINES - 1;
		draw_bar(pen.y, " DROPS       RATE  REASON, AND WHERE");
		new_line(&pen);
		put_drops(&pen, p, DROPS);
		break;
	case PAGE_DETAIL:
		draw_detail(s, p, &pen);
		break;
	case PAGE_DROPS:
		draw_bar(pen.y, " DROPS       RATE  REASON, AND WHERE");
		new_line(&pen);
		if (!sum.totals.dropped)
			put(&pen, "No packet was dropped.");
		put_drops(&pen, p, 0);
		break;
	case PAGE_HELP:
		draw_help(&pen);
		break;
	}
	draw_bottom(s);
	refresh();
}
