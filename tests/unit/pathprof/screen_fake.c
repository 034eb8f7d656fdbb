// SPDX-License-Identifier: GPL-2.0-only
/*
 * The full screen of `pathprof top`, of a profile file: `screen_fake FILE`.
 * test_screen.py drives it on a pseudo terminal.
 */
#include <stdio.h>
#include <string.h>
#include "base/tool.h"
#include "view/render.h"

static struct profile file;

static int read_file(void *arg, struct profile *interval,
		     struct profile *total, struct live *live)
{
	struct profile none = {};

	(void)arg;
	live->in_bursts = file.budget_ppm;
	live->bursts = 3;
	live->age = 0.5;
	live->own = 0.25;
	live->budget = 0.4;
	live->interval = 2;
	return profile__diff(&file, &none, interval) ||
	       profile__diff(&file, &none, total);
}

static const char *more(void *arg, bool up)
{
	(void)arg;
	return up ? "more was asked for" : "less was asked for";
}

static void reset(void *arg)
{
	(void)arg;
	file.npaths = 0;
}

int main(int argc, char **argv)
{
	struct screen_source source = {
		.read = read_file, .more = more, .reset = reset, .seconds = 2,
	};
	char err[512];

	if (argc != 2 || profile__view(&file, argv[1], false, err, sizeof(err)))
		return EXIT_USAGE;
	return render__screen(&source);
}
