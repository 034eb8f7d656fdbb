/* SPDX-License-Identifier: GPL-2.0-only */
/* The state of the full screen, between its keys and its drawing. */
#ifndef PATHPROF_SCREEN_H
#define PATHPROF_SCREEN_H

#include "profile/group.h"
#include "view/render.h"

enum screen_page { PAGE_ROWS, PAGE_DETAIL, PAGE_DROPS, PAGE_HELP };

struct screen {
	enum screen_page page;
	enum sort_column sort;
	enum group_by by;
	bool paused, interval, all_stages, typing;
	size_t selected, first;	/* row */
	size_t nrows, shown;	/* as drawn last */
	char filter[40];
	char message[96];	/* until the next key */
};

void screen__draw(struct screen *s, const struct profile *interval,
		  const struct profile *total, const struct live *live);

#endif
