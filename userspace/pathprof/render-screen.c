// SPDX-License-Identifier: GPL-2.0
/*
 * The full-screen view of `pathprof top`: the same head and rows as the
 * plain frame, with keys to sort, freeze, unfold stages and quit.
 */
#include <curses.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
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

/* The head as lines, through the text view. */
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

static void draw(const struct screen *s, const struct profile *p,
		 const struct profile *total)
{
	size_t *order = render__order(p, s->sort), i;
	struct profile_totals t;
	char row[160];
	int y;

	profile__totals(p, &t);
	erase();
	y = draw_head(p, total) + 1;
	attron(A_REVERSE);
	mvprintw(y++, 0, "%-*.*s", COLS, COLS, TABLE_HEADER);
	attroff(A_REVERSE);
	for (i = s->first; order && i < p->npaths && y < LINES - 1; i++) {
		render__row(p, &t, &p->paths[order[i]], row, sizeof(row));
		mvaddnstr(y++, 0, row, COLS);
		if (s->stages && y < LINES - 1)
			y = draw_stages(p, &p->paths[order[i]], y);
	}
	attron(A_REVERSE);
	mvprintw(LINES - 1, 0, "%-*.*s", COLS - 1, COLS - 1,
		 "q quit  s sort  f freeze  p stages  c since start  "
		 "arrows scroll");
	attroff(A_REVERSE);
	mvprintw(LINES - 1, COLS > 79 ? 64 : COLS - 15, " by %s%s ",
		 sort_name(s->sort), s->frozen ? " FROZEN" : "");
	refresh();
	free(order);
}

/* False to quit. */
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
	}
	return true;
}

int render__screen(const struct screen_source *source)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct screen s = { .stages = true };
	struct profile interval = {}, total = {};
	int key = ERR, rc = 0;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	initscr();
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	timeout(source->seconds * 1000);
	do {
		/* A key redraws at once; only the clock reads anew. */
		if (key == ERR && !s.frozen) {
			profile__free(&interval);
			profile__free(&total);
			rc = source->read(source->arg, &interval, &total);
			if (rc)
				break;
		}
		draw(&s, s.cumulative ? &total : &interval, &total);
		key = getch();
	} while (!stopped && handle_key(&s, key, interval.npaths));
	endwin();
	if (rc)
		complain("top: cannot read the maps: %s", strerror(-rc));
	profile__free(&interval);
	profile__free(&total);
	return rc ? EXIT_FAILED : EXIT_GOOD;
}
