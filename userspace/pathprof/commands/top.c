// SPDX-License-Identifier: GPL-2.0-only
/*
 * pathprof top: the paths packets take right now; a full screen on a
 * terminal, plain frames otherwise.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include "kernel/places.h"
#include "record/options.h"
#include "view/render.h"

#define MOST_BUDGET	50	/* percent; the same limit as --budget's */
#define LEAST_BUDGET	0.05

struct top {
	struct session *session;
	struct profile last;	/* cumulative, at the last frame, raw */
	struct profile base;	/* the same, at the last reset */
	double seconds, budget;
	bool raw, json;
};

/* What is spent for the packets' sake, in percent of all CPUs. */
static double own_share(const struct profile *total,
			const struct session_pulse *pulse)
{
	double all = total->duration_ns * sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t own = pulse->cost_ns;
	size_t i, at;

	if (all <= 0)
		return 0;
	for (i = 0; !pulse->in_bursts && i < total->npaths; i++)
		for (at = 0; at < total->paths[i].key.n; at++)
			own += total->paths[i].probe_ns[at];
	return 100 * own / all;
}

static void fill_live(struct top *top, const struct profile *all,
		      struct live *live)
{
	struct session_pulse pulse;

	session__pulse(top->session, &pulse);
	*live = (struct live){
		.in_bursts = pulse.in_bursts,
		.bursts = pulse.bursts,
		.age = pulse.bursts ? pulse.age_ns / 1e9 : -1,
		.own = own_share(all, &pulse),
		.budget = pulse.budget,
		.interval = top->seconds,
	};
}

/* A copy of all of it. */
static int keep(const struct profile *p, struct profile *copy)
{
	profile__free(copy);
	return profile__diff(p, &(struct profile){}, copy);
}

static int read_interval(void *arg, struct profile *interval,
			 struct profile *total, struct live *live)
{
	struct top *top = arg;
	struct profile all;
	int rc;

	profile__init(&all);
	rc = session__read(top->session, &all);
	places__name(&all);
	if (!rc)
		rc = profile__diff(&all, &top->last, interval);
	if (!rc)
		rc = profile__diff(&all, &top->base, total);
	if (!rc)
		rc = keep(&all, &top->last);
	if (rc) {
		profile__free(&all);
		return rc;
	}
	if (live)
		fill_live(top, &all, live);
	profile__free(&all);
	if (!top->raw) {
		profile__subtract(interval);
		profile__subtract(total);
	}
	return 0;
}

static void reset(void *arg)
{
	struct top *top = arg;

	if (keep(&top->last, &top->base))
		memset(&top->base, 0, sizeof(top->base));
}

static const char *sample_more(void *arg, bool up)
{
	static char text[96];
	struct top *top = arg;
	double budget = top->budget * (up ? 2 : 0.5);

	if (!top->budget)
		return "--sample is fixed while pathprof runs; without it, + "
		       "samples more.";
	if (budget > MOST_BUDGET || budget < LEAST_BUDGET)
		return up ? "That is the highest budget." :
		       "That is the lowest budget.";
	session__set_budget(top->session, budget);
	top->budget = budget;
	snprintf(text, sizeof(text), "Sampling bursts may take %.3g %% of the "
		 "CPU time.", budget);
	return text;
}

static int print_frame(struct top *top, unsigned int limit)
{
	struct render_options view = { .limit = limit, .stages = true };
	struct profile interval, total;
	int status = EXIT_GOOD, rc;
	struct live live;

	rc = read_interval(top, &interval, &total, &live);
	if (rc) {
		complain("top: cannot read the maps: %s", strerror(-rc));
		return EXIT_FAILED;
	}
	if (top->json)
		status = render__json(&interval, &total, &live);
	else
		render__text(stdout, &interval, &total, &view);
	profile__free(&interval);
	profile__free(&total);
	return finish_stdout(status);
}

static int run_plain(struct top *top, double seconds, bool once,
		     unsigned int limit)
{
	struct pollfd p = { .events = POLLIN };
	sigset_t set;
	int rc;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	p.fd = signalfd(-1, &set, SFD_CLOEXEC);
	for (;;) {
		/* The interval; a signal ends it early. */
		bool stop = poll(&p, 1, seconds * 1000) > 0;

		if (once || stop)
			session__stop(top->session);
		rc = print_frame(top, limit);
		if (rc || once || stop)
			return rc;
		if (!top->json)
			putchar('\n');
	}
}

int cmd_top(const struct command *self, int argc, char **argv)
{
	struct record_options common = {};
	struct top top = { .seconds = 2 };
	bool once = false, batch = false;
	unsigned int limit = 0;
	const struct option_def options[] = {
		{ 'i', "interval", OPT_SECONDS, &top.seconds, 0.1, 86400, "S",
		  "seconds between frames (default 2)" },
		{ 0, "once", OPT_FLAG, &once, 0, 0, NULL,
		  "print one frame as plain text and end" },
		{ 0, "batch", OPT_FLAG, &batch, 0, 0, NULL,
		  "print frames as plain text until interrupted" },
		{ 0, "json", OPT_FLAG, &top.json, 0, 0, NULL,
		  "with --once or --batch: a line of JSON for each frame" },
		{ 'n', "limit", OPT_UINT, &limit, 1, PATH_PATHS, "N",
		  "show only the N most expensive paths (plain text)" },
		RAW_OPTION(&top.raw),
		RECORD_OPTIONS(&common),
		{ 0 }
	};
	int at = options__read(self, options, argc, argv), rc;
	char err[512];

	if (at < 0)
		return options__status(at);
	if (at < argc) {
		complain("top: takes no words, not \"%s\"", argv[at]);
		return EXIT_USAGE;
	}
	if (top.json && !once && !batch) {
		complain("top: --json needs --once or --batch");
		return EXIT_USAGE;
	}
	rc = record_options__settle(&common, "top");
	if (rc)
		return rc;
	top.budget = common.config.sample ? 0 : common.config.budget;
	common.config.groups = true;
	rc = session__start(&top.session, &common.config, err, sizeof(err));
	if (rc) {
		complain("top: %s", err);
		return exit_status(rc);
	}
	if (once || batch || !isatty(STDOUT_FILENO) ||
	    !isatty(STDIN_FILENO)) {
		rc = run_plain(&top, top.seconds, once, limit);
	} else {
		struct screen_source source = {
			.read = read_interval, .more = sample_more,
			.reset = reset, .arg = &top, .seconds = top.seconds,
		};

		rc = render__screen(&source);
	}
	profile__free(&top.last);
	profile__free(&top.base);
	session__free(top.session);
	return rc;
}
