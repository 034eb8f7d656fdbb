// SPDX-License-Identifier: GPL-2.0-only
/*
 * The full-screen view of `pathprof top`: the terminal, the keys, and when to
 * read and to draw.
 */
#include <curses.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <time.h>
#include "base/tool.h"
#include "view/screen.h"

#define FIRST_FRAMES	0.25	/* s between frames until there is something to see */
#define ESCAPE		27

static volatile sig_atomic_t stopped;

static void on_signal(int signo)
{
	stopped = signo;
}

/* The text of the incremental filter; every key redraws. */
static void type(struct screen *s, int key)
{
	size_t n = strlen(s->filter);

	switch (key) {
	case '\n':
	case KEY_ENTER:
		s->typing = false;
		break;
	case ESCAPE:
		s->typing = false;
		s->filter[0] = 0;
		break;
	case KEY_BACKSPACE:
	case '\b':
	case 127:
		if (n)
			s->filter[n - 1] = 0;
		break;
	default:
		if (key >= ' ' && key < 127 && n + 1 < sizeof(s->filter)) {
			s->filter[n] = key;
			s->filter[n + 1] = 0;
		}
	}
	s->selected = s->first = 0;
}

static void next_group(struct screen *s, const struct profile *p)
{
	do
		s->by = (s->by + 1) % GROUPINGS;
	while (!group__possible(p, s->by));
	s->selected = s->first = 0;
}

static void move_to(struct screen *s, long row)
{
	long last = s->nrows ? (long)s->nrows - 1 : 0;

	s->selected = row < 0 ? 0 : row > last ? last : row;
}

static void show_page(struct screen *s, enum screen_page page)
{
	s->page = s->page == page ? PAGE_ROWS : page;
}

static bool handle_move(struct screen *s, int key)
{
	long step = s->shown ? s->shown : 1;

	switch (key) {
	case KEY_DOWN:
	case 'j':
		move_to(s, s->selected + 1L);
		return true;
	case KEY_UP:
	case 'k':
		move_to(s, s->selected - 1L);
		return true;
	case KEY_NPAGE:
		move_to(s, s->selected + step);
		return true;
	case KEY_PPAGE:
		move_to(s, s->selected - step);
		return true;
	case KEY_HOME:
		move_to(s, 0);
		return true;
	case KEY_END:
		move_to(s, s->nrows);
		return true;
	}
	return false;
}

/* False to quit. */
static bool handle_key(struct screen *s, int key, const struct profile *p,
		       const struct screen_source *source)
{
	if (key == ERR)
		return true;
	s->message[0] = 0;
	if (s->typing) {
		type(s, key);
		return true;
	}
	if (handle_move(s, key))
		return true;
	switch (key) {
	case 'q':
		return false;
	case '?':
	case 'h':
		show_page(s, PAGE_HELP);
		break;
	case '\n':
	case KEY_ENTER:
		show_page(s, PAGE_DETAIL);
		break;
	case 'd':
		show_page(s, PAGE_DROPS);
		break;
	case ESCAPE:
		if (s->page == PAGE_ROWS)
			s->filter[0] = 0;
		s->page = PAGE_ROWS;
		break;
	case '/':
		s->page = PAGE_ROWS;
		s->typing = true;
		break;
	case 's':
	case '>':
		s->sort = (s->sort + 1) % SORT_COLUMNS;
		break;
	case '<':
		s->sort = (s->sort + SORT_COLUMNS - 1) % SORT_COLUMNS;
		break;
	case 'g':
		next_group(s, p);
		break;
	case 'p':
	case 'f':
	case ' ':
		s->paused = !s->paused;
		break;
	case 'a':
		s->all_stages = !s->all_stages;
		break;
	case 'c':
		s->interval = !s->interval;
		break;
	case 'r':
		source->reset(source->arg);
		snprintf(s->message, sizeof(s->message),
			 "Counting from now on.");
		break;
	case '+':
	case '-':
		snprintf(s->message, sizeof(s->message), "%s",
			 source->more(source->arg, key == '+'));
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

/* Is there something to look at, a whole burst at least? */
static bool seen(const struct profile *total, const struct live *live)
{
	return total->npaths && (!live->in_bursts || live->bursts);
}

/* Read and draw until told to stop; keys redraw at once. */
static int run(struct screen *s, const struct screen_source *source)
{
	struct profile interval = {}, total = {};
	struct live live = {};
	double next = 0, left;
	int key, rc = 0;

	do {
		left = next - now_seconds();
		if (left <= 0) {
			if (!s->paused) {
				profile__free(&interval);
				profile__free(&total);
				rc = source->read(source->arg, &interval,
						  &total, &live);
				if (rc)
					break;
			}
			left = source->seconds;
			if (!seen(&total, &live) && left > FIRST_FRAMES)
				left = FIRST_FRAMES;
			next = now_seconds() + left;
		}
		screen__draw(s, &interval, &total, &live);
		timeout(left * 1000 + 1);
		key = getch();
		if (key == 'r' && !s->typing)
			next = 0;
	} while (!stopped &&
		 handle_key(s, key, s->interval ? &interval : &total, source));
	profile__free(&interval);
	profile__free(&total);
	return rc;
}

int render__screen(const struct screen_source *source)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct screen s = {};
	SCREEN *terminal;
	int rc;

	/* Before ncurses, which leaves handlers alone that are set. */
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
