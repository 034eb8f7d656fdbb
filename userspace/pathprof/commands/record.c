// SPDX-License-Identifier: GPL-2.0-only
/*
 * pathprof record: follow packets while COMMAND runs, for a duration, or
 * until interrupted, and write the profile.  The file appears only when it
 * is complete.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "base/output-file.h"
#include "record/options.h"

struct child {
	pid_t pid;
	int go;			/* write end: lets it exec */
	int status;		/* as the shell counts; -1: runs */
};

static char *join(char **argv)
{
	size_t len = 1;
	char *text;
	int i;

	for (i = 0; argv[i]; i++)
		len += strlen(argv[i]) + 1;
	text = calloc(1, len);
	for (i = 0; text && argv[i]; i++) {
		if (i)
			strcat(text, " ");
		strcat(text, argv[i]);
	}
	return text;
}

/* Start COMMAND, which waits for a byte before it execs. */
static int start_child(struct child *c, char **argv)
{
	sigset_t none;
	int fd[2];
	char byte;

	if (pipe2(fd, O_CLOEXEC))
		return -errno;
	c->pid = fork();
	if (c->pid < 0)
		return -errno;
	if (!c->pid) {
		close(fd[1]);
		/* End of file: the recorder gave up. */
		if (read(fd[0], &byte, 1) != 1)
			_exit(EXIT_FAILED);
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execvp(argv[0], argv);
		complain("record: cannot run %s: %s", argv[0],
			 strerror(errno));
		_exit(errno == ENOENT ? EXIT_NOT_FOUND : 126);
	}
	close(fd[0]);
	c->go = fd[1];
	c->status = -1;
	return 0;
}

static void reap(struct child *c)
{
	int status;

	if (c->pid <= 0 || waitpid(c->pid, &status, WNOHANG) != c->pid)
		return;
	c->status = WIFEXITED(status) ? WEXITSTATUS(status) :
		    128 + WTERMSIG(status);
	c->pid = 0;
}

/* Until a signal, the child's end, or the duration; seconds 0: no limit. */
static void wait_for_end(int signals, struct child *c, double seconds)
{
	struct pollfd p = { .fd = signals, .events = POLLIN };
	struct signalfd_siginfo info;
	struct timespec now, end;
	int left = -1;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += (time_t)seconds;
	end.tv_nsec += (seconds - (time_t)seconds) * 1e9;
	for (;;) {
		if (seconds) {
			clock_gettime(CLOCK_MONOTONIC, &now);
			left = (end.tv_sec - now.tv_sec) * 1000 +
			       (end.tv_nsec - now.tv_nsec) / 1000000;
			if (left <= 0)
				break;
		}
		if (poll(&p, 1, left) <= 0)
			continue;
		if (read(signals, &info, sizeof(info)) != sizeof(info))
			continue;
		if (info.ssi_signo != SIGCHLD)
			break;
		reap(c);
		if (!c->pid)
			return;
	}
	/* Stop COMMAND too, and see how it ends. */
	if (c->pid > 0) {
		kill(c->pid, SIGTERM);
		if (poll(&p, 1, 2000) > 0)
			reap(c);
	}
}

static int catch_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC);
}

/* The command that shows a file; nothing for stdout. */
static void print_next(const char *command, const char *file)
{
	char name[512];

	if (output_file__is_stdout(file))
		fputc('\n', stderr);
	else
		fprintf(stderr, "; see: pathprof %s %s\n", command,
			printable(file, name, sizeof(name)));
}

/* A line about the profile that was saved; one more if it is empty. */
static void print_saved(const struct profile *p, const char *output)
{
	struct profile_totals t;

	profile__totals(p, &t);
	fprintf(stderr, "pathprof: %llu packets on %zu paths in %.1f s, %llu "
		"lost", (unsigned long long)t.packets, p->npaths,
		p->duration_ns / 1e9, (unsigned long long)t.lost);
	print_next("report", output);
	if (!t.packets && p->budget_ppm)
		complain("record: no packet was seen in the %llu sampling "
			 "bursts (%.1f ms in all); --sample 1 follows every "
			 "packet",
			 (unsigned long long)p->counters[CN_BURSTS],
			 p->open_ns / 1e6);
}

static int save_events(struct session *s, const struct profile *p,
		       const char *file)
{
	uint64_t lost;
	char err[512];
	int rc = session__write_events(s, p, &lost, err, sizeof(err));

	if (rc) {
		complain("record: %s", err);
		return rc;
	}
	fprintf(stderr, "pathprof: events kept, %llu lost",
		(unsigned long long)lost);
	print_next("journey", file);
	if (lost)
		complain("record: %llu events did not fit the buffer; a "
			 "larger --event-buffer, or sampling, loses fewer",
			 (unsigned long long)lost);
	return 0;
}

static int save(struct session *s, const struct session_config *config,
		const char *output, char **argv, const struct child *c)
{
	struct profile p;
	char err[512];
	int rc;

	profile__init(&p);
	rc = session__read(s, &p);
	if (rc) {
		complain("record: cannot read the profile from the kernel: %s",
			 strerror(-rc));
		return EXIT_FAILED;
	}
	if (*argv) {
		p.command = join(argv);
		p.command_status = c->status < 0 ? 0 : c->status;
	}
	rc = profile__write(&p, output, err, sizeof(err));
	if (rc)
		complain("record: %s", err);
	else
		print_saved(&p, output);
	if (config->events && save_events(s, &p, config->events))
		rc = -EIO;
	profile__free(&p);
	return rc ? EXIT_FAILED : EXIT_GOOD;
}

static int record(const struct session_config *config, const char *output,
		  double seconds, unsigned int ready, char **argv)
{
	struct child child = { .status = -1 };
	struct session *s;
	char err[512];
	int signals, rc;

	signals = catch_signals();
	if (*argv && start_child(&child, argv)) {
		complain("record: cannot start %s: %s", argv[0],
			 strerror(errno));
		return EXIT_FAILED;
	}
	rc = session__start(&s, config, err, sizeof(err));
	if (rc) {
		complain("record: %s", err);
		if (child.pid) {
			close(child.go);
			waitpid(child.pid, NULL, 0);
		}
		return exit_status(rc);
	}
	if (ready && write(ready, "\n", 1) != 1)
		complain("record: cannot write to --ready-fd %u: %s", ready,
			 strerror(errno));
	if (child.pid && write(child.go, "g", 1) != 1)
		complain("record: COMMAND ended before it began");
	wait_for_end(signals, &child, seconds);
	session__stop(s);
	rc = save(s, config, output, argv, &child);
	session__free(s);
	if (rc || child.status <= 0)
		return rc;
	complain("record: %s ended with status %d; the profile is kept",
		 argv[0], child.status);
	return child.status == EXIT_NOT_FOUND ? EXIT_NOT_FOUND : EXIT_FAILED;
}

int cmd_record(const struct command *self, int argc, char **argv)
{
	struct record_options common = {};
	const char *output = NULL;
	unsigned int ready = 0;
	double seconds = 0;
	const struct option_def options[] = {
		{ 'o', "output", OPT_TEXT, &output, 0, 0, "FILE",
		  "the profile file to write" },
		{ 0, "events", OPT_TEXT, &common.config.events, 0, 0, "FILE",
		  "also keep the raw events of each packet" },
		{ 0, "event-buffer", OPT_UINT, &common.config.events_kb, 4,
		  1048576, "KB", "room for them in the kernel (default 16384)" },
		{ 0, "capture", OPT_UINT, &common.config.capture, 1,
		  CAPTURE_MAX, "N",
		  "keep the first N bytes of each packet among the events" },
		RECORD_OPTIONS(&common),
		{ 0, "duration", OPT_SECONDS, &seconds, 0.001, 1000000, "S",
		  "stop after S seconds" },
		{ 0, "ready-fd", OPT_UINT, &ready, 1, 1023, "FD",
		  "write a newline to FD when recording has begun" },
		{ 0 }
	};
	int at = options__read(self, options, argc, argv), rc;
	char err[512];

	if (at < 0)
		return options__status(at);
	if (!output) {
		complain("record: no output file; add -o FILE");
		return EXIT_USAGE;
	}
	if (at < argc && (at == 0 || strcmp(argv[at - 1], "--"))) {
		complain("record: put -- before the command \"%s\"", argv[at]);
		return EXIT_USAGE;
	}
	rc = record_options__settle(&common, "record");
	if (rc)
		return rc;
	if (common.config.events_kb && !common.config.events) {
		complain("record: --event-buffer is for --events");
		return EXIT_USAGE;
	}
	if (common.config.capture && !common.config.events) {
		complain("record: --capture is for --events");
		return EXIT_USAGE;
	}
	if (common.config.events && !strcmp(common.config.events, output)) {
		complain("record: --events and -o name the same file");
		return EXIT_USAGE;
	}
	if (output_file__check(output, err, sizeof(err)) ||
	    (common.config.events &&
	     output_file__check(common.config.events, err, sizeof(err)))) {
		complain("record: %s", err);
		return EXIT_FAILED;
	}
	return record(&common.config, output, seconds, ready, argv + at);
}
