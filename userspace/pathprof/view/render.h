/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Views of a profile.  They read profiles and nothing else.
 */
#ifndef PATHPROF_RENDER_H
#define PATHPROF_RENDER_H

#include <stdio.h>
#include "profile/group.h"

struct render_options {
	enum sort_column sort;
	size_t limit;		/* paths shown; 0: all */
	bool stages;		/* the stage list under each path */
	bool detail;		/* cost per stage and histogram */
};

/* Columns of the terminal; 79 if stdout is not a terminal. */
unsigned int render__width(void);
/* Is a table wide enough for columns of quantiles? */
const char *render__header(unsigned int width);

/* The head of a frame; total is the account since the start. */
void render__head(FILE *f, const struct profile *p,
		  const struct profile *total);
void render__text(FILE *f, const struct profile *p,
		  const struct profile *total,
		  const struct render_options *options);
/* Of a recording that goes on, beside its profile. */
struct live {
	bool in_bursts;
	uint64_t bursts;
	double age;		/* s since the last burst closed; < 0: none has */
	double own;		/* pathprof's share of the CPUs' time, percent */
	double budget;		/* percent, of bursts */
	double interval;	/* s between frames */
};
/* A frame as one line of JSON; an exit status. */
int render__json(const struct profile *interval, const struct profile *total,
		 const struct live *live);

/*
 * Full-screen.  read returns the profiles of the last interval and since the
 * last reset, and the state; more doubles or halves what is sampled, and
 * returns what that means.  The result is an exit status.
 */
struct screen_source {
	int (*read)(void *arg, struct profile *interval,
		    struct profile *total, struct live *live);
	const char *(*more)(void *arg, bool up);
	void (*reset)(void *arg);
	void *arg;
	double seconds;
};
int render__screen(const struct screen_source *source);

#endif
