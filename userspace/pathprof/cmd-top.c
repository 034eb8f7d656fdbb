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
#include "choose.h"
#include "render.h"

struct top {
	struct session *session;
	struct profile last;	/* cumulative, at the last frame, raw */
	bool raw;
};

static int read_interval(void *arg, struct profile *interval,
			 struct profile *total)
{
	struct top *top = arg;
	int rc;

	profile__init(total);
	rc = session__read(top->session, total);
	if (!rc)
		rc = profile__diff(total, &top->last, interval);
	if (rc) {
		profile__free(total);
		return rc;
	}
	/* total stays with the caller; what we keep is a copy. */
	profile__free(&top->last);
	rc = profile__diff(total, &(struct profile){}, &top->last);
	if (!top->raw) {
		profile__subtract(interval);
		profile__subtract(total);
	}
	return rc;
}

static int print_frame(struct top *top, unsigned int limit)
{
	struct render_options view = { .limit = limit, .stages = true };
	struct profile interval, total;
	int rc = read_interval(top, &interval, &total);

	if (rc) {
		complain("top: cannot read the maps: %s", strerror(-rc));
		return EXIT_FAILED;
	}
	render__text(stdout, &interval, &total, &view);
	profile__free(&interval);
	profile__free(&total);
	return finish_stdout(EXIT_GOOD);
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
		putchar('\n');
	}
}

int cmd_top(const struct command *self, int argc, char **argv)
{
	struct choice choice = {};
	struct top top = {};
	bool once = false, batch = false;
	unsigned int limit = 0;
	double seconds = 2;
	const struct option_def options[] = {
		{ 'i', "interval", OPT_SECONDS, &seconds, 0.1, 86400, "S",
		  "seconds between frames (default 2)" },
		{ 0, "once", OPT_FLAG, &once, 0, 0, NULL,
		  "print one frame as plain text and end" },
		{ 0, "batch", OPT_FLAG, &batch, 0, 0, NULL,
		  "print frames as plain text until interrupted" },
		{ 'n', "limit", OPT_UINT, &limit, 1, PATH_PATHS, "N",
		  "show only the N most expensive paths (plain text)" },
		RAW_OPTION(&top.raw),
		CHOICE_OPTIONS(&choice),
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
	rc = choice__settle(&choice, "top");
	if (rc)
		return rc;
	rc = session__start(&top.session, &choice.config, err, sizeof(err));
	if (rc) {
		complain("top: %s", err);
		return exit_status(rc);
	}
	if (once || batch || !isatty(STDOUT_FILENO) ||
	    !isatty(STDIN_FILENO)) {
		rc = run_plain(&top, seconds, once, limit);
	} else {
		struct screen_source source = { read_interval, &top, seconds };

		rc = render__screen(&source);
	}
	profile__free(&top.last);
	session__free(top.session);
	return rc;
}
