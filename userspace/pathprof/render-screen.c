// SPDX-License-Identifier: GPL-2.0-only
/*
 * The full-screen view of `pathprof top`: the same head and rows as the
 * plain frame, with keys to sort, freeze, unfold stages and quit.
 */
#include <curses.h>
#include <signal.h>
#include <stdlib.h>
#include <term.h>
#include <string.h>
#include <time.h>
#include "pathprof-tool.h"
#include "render.h"

struct screen {
	enum sort_column sort;
	bool frozen, stages, cumulative;
	size_t first;		/* first path shown */
};

static volatile sig_atomic_t stopped;

static void on_signal(int signo)
{
	stopped = signo;
}

/* The head as lines, written by the text view. */
static int draw_head(const struct profile *p, const struct profile *total)
{
	char *text = NULL, *rest, *line;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int y = 0;

	if (!f)
		return 0;
	render__head(f, p, total);
	fclose(f);
	for (rest = text; (line = strsep(&rest, "\n")) && rest;)
		mvaddnstr(y++, 0, line, COLS);
	free(text);
	return y;
}

static int draw_stages(const struct profile *p,
		       const struct profile_path *path, int y)
{
	char clean[32];
	size_t i;

	move(y, 7);
	for (i = 0; i < path->key.n; i++) {
		printable(p->stages[path->key.stages[i] & 63].name, clean,
			  sizeof(clean));
		if (getcurx(stdscr) + (int)strlen(clean) + 1 >= COLS) {
			if (++y >= LINES - 1)
				return y;
			move(y, 9);
		}
		printw("%s%s", i ? ">" : "", clean);
	}
	return y + 1;
}

static void draw_bar(int y, const char *text)
{
	attron(A_REVERSE);
	mvhline(y, 0, ' ', COLS);
	/* The last cell of the last line would scroll the screen. */
	mvaddnstr(y, 0, text, COLS - 1);
	attroff(A_REVERSE);
}

static void draw_paths(struct screen *s, const struct profile *p, int y)
{
	size_t *order = render__order(p, s->sort), i;
	struct profile_totals t;
	char row[160];

	if (!p->npaths && y < LINES - 1)
		mvaddnstr(y, 0, "No TCP packets were sampled.", COLS);
	/* This interval may have fewer paths than the last. */
	if (s->first >= p->npaths)
		s->first = p->npaths ? p->npaths - 1 : 0;
	profile__totals(p, &t);
	for (i = s->first; order && i < p->npaths && y < LINES - 1; i++) {
		render__row(p, &t, &p->paths[order[i]], COLS, row, sizeof(row));
		mvaddnstr(y++, 0, row, COLS);
		if (s->stages && y < LINES - 1)
			y = draw_stages(p, &p->paths[order[i]], y);
	}
	free(order);
}

static void draw(struct screen *s, const struct profile *p,
		 const struct profile *total)
{
	char state[96];
	int y;

	erase();
	/* Keep a few lines for the paths; show the account if there is room. */
	y = LINES > 9 ? draw_head(p, total) : 0;
	snprintf(state, sizeof(state), "%zu paths %s, by %s%s", p->npaths,
		 s->cumulative ? "since the start" : "in this interval",
		 sort_name(s->sort), s->frozen ? "  -- FROZEN --" : "");
	if (s->frozen)
		attron(A_BOLD);
	mvaddnstr(y++, 0, state, COLS);
	attroff(A_BOLD);
	draw_bar(y++, render__header(COLS));
	draw_paths(s, p, y);
	draw_bar(LINES - 1, "q quit  s sort  f freeze  p stages  "
		 "c since start  arrows scroll");
	refresh();
}

/* Returns false to quit. */
static bool handle_key(struct screen *s, int key, size_t npaths)
{
	switch (key) {
	case 'q':
		return false;
	case 's':
	case '>':
		s->sort = (s->sort + 1) % SORT_COLUMNS;
		break;
	case '<':
		s->sort = (s->sort + SORT_COLUMNS - 1) % SORT_COLUMNS;
		break;
	case 'f':
	case ' ':
		s->frozen = !s->frozen;
		break;
	case 'p':
		s->stages = !s->stages;
		break;
	case 'c':
		s->cumulative = !s->cumulative;
		break;
	case KEY_DOWN:
		if (s->first + 1 < npaths)
			s->first++;
		break;
	case KEY_UP:
		if (s->first)
			s->first--;
		break;
	case KEY_NPAGE:
		s->first += s->first + 5 < npaths ? 5 : 0;
		break;
	case KEY_PPAGE:
		s->first -= s->first < 5 ? s->first : 5;
		break;
	case KEY_HOME:
		s->first = 0;
		break;
	}
	return true;
}

static double now_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Read and draw until told to stop; keys redraw at once. */
static int run(struct screen *s, const struct screen_source *source)
{
	struct profile interval = {}, total = {};
	double next = 0, left;
	int key, rc = 0;

	do {
		left = next - now_seconds();
		if (left <= 0) {
			next = now_seconds() + source->seconds;
			left = source->seconds;
			if (!s->frozen) {
				profile__free(&interval);
				profile__free(&total);
				rc = source->read(source->arg, &interval,
						  &total);
				if (rc)
					break;
			}
		}
		draw(s, s->cumulative ? &total : &interval, &total);
		timeout(left * 1000 + 1);
		key = getch();
	} while (!stopped && handle_key(s, key, s->cumulative ?
					total.npaths : interval.npaths));
	profile__free(&interval);
	profile__free(&total);
	return rc;
}

int render__screen(const struct screen_source *source)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct screen s = { .stages = true };
	SCREEN *terminal;
	int rc;

	/* Before ncurses starts: it keeps handlers that are set. */
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	terminal = newterm(NULL, stdout, stdin);
	/* Some types are known but cannot move the cursor. */
	if (terminal && !tigetstr("cup")) {
		endwin();
		delscreen(terminal);
		terminal = NULL;
	}
	if (!terminal) {
		complain("top: no full screen on a terminal of type \"%.32s\"; "
			 "use --batch", getenv("TERM") ?: "");
		return EXIT_FAILED;
	}
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	set_escdelay(50);
	rc = run(&s, source);
	endwin();
	delscreen(terminal);
	if (rc)
		complain("top: cannot read the maps: %s", strerror(-rc));
	return rc ? EXIT_FAILED : EXIT_GOOD;
}
