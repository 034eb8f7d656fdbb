/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the commands: the tables of commands and options, messages,
 * exit statuses.  Commands never include one another.
 */
#ifndef PATHPROF_TOOL_H
#define PATHPROF_TOOL_H

#include <stdbool.h>
#include <stddef.h>

enum {
	EXIT_GOOD = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_UNSUPPORTED = 3,
	EXIT_CANNOT_TELL = 125,	/* as `git bisect run` understands it */
	EXIT_NOT_FOUND = 127,	/* as the shell's */
};

enum option_type { OPT_FLAG, OPT_UINT, OPT_SECONDS, OPT_PERCENT, OPT_TEXT,
		   OPT_ADDR };

struct option_def {
	char letter;		/* 0: none */
	const char *name;
	enum option_type type;
	void *value;		/* bool, unsigned int, double, const char * */
	double min, max;	/* of numbers */
	const char *arg;	/* what to call the argument in help */
	const char *help;
};

/* Of all views of a profile. */
#define RAW_OPTION(raw) \
	{ 0, "raw", OPT_FLAG, raw, 0, 0, NULL, \
	  "times as measured, with pathprof's own cost" }

struct json_t;

struct command {
	const char *name;
	const char *synopsis;
	const char *summary;
	int (*run)(const struct command *self, int argc, char **argv);
};

int cmd_top(const struct command *self, int argc, char **argv);
int cmd_record(const struct command *self, int argc, char **argv);
int cmd_report(const struct command *self, int argc, char **argv);
int cmd_journey(const struct command *self, int argc, char **argv);
int cmd_explain(const struct command *self, int argc, char **argv);
int cmd_check(const struct command *self, int argc, char **argv);
int cmd_diff(const struct command *self, int argc, char **argv);
int cmd_flame(const struct command *self, int argc, char **argv);
int cmd_export(const struct command *self, int argc, char **argv);
int cmd_merge(const struct command *self, int argc, char **argv);
int cmd_completion(const struct command *self, int argc, char **argv);
int cmd_list(const struct command *self, int argc, char **argv);

/*
 * Read options up to the first word that is none (or past "--").  Returns its
 * index; -1 after --help (exit 0); -2 after a complaint (exit 2).
 */
int options__read(const struct command *cmd, const struct option_def *defs,
		  int argc, char **argv);
/* Exit status of a negative result of options__read(). */
int options__status(int rc);
/* "; did you mean X?", or nothing; in a static buffer. */
const char *nearest(const char *word, const char *const *words, size_t n);

/* 1234567 -> "1.2M", at most 5 characters. */
const char *human(double v, char out[8]);
/* Exit status of a negative errno that a library function returned. */
int exit_status(int rc);
/* One line on stderr, control characters made visible. */
void complain(const char *format, ...)
	__attribute__((format(printf, 1, 2)));
/*
 * text with control characters as '?', into out: whole characters only, so
 * that a small size cuts it for a column.
 */
const char *printable(const char *text, char *out, size_t size);
/*
 * Print JSON and a newline, without a byte that a terminal could obey; takes
 * root over.  An exit status, with a message if there was no memory for it.
 */
int print_json(struct json_t *root, size_t flags);
/* Flush stdout; EXIT_FAILED with a message if it could not be written. */
int finish_stdout(int status);

#endif
