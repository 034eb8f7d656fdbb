// SPDX-License-Identifier: GPL-2.0-only
/* Options of a command, from its table: parsing and --help, by argp(3). */
#define _GNU_SOURCE
#include "tcpload.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define MAX_OPTIONS	32
#define FIRST_KEY	1000	/* above all characters: long options only */

static long unit_of(const struct option_spec *spec)
{
	return spec->unit ? spec->unit : 1;
}

static long number(const struct option_spec *spec, const char *text,
		   struct argp_state *state)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < spec->min || n > spec->max)
		argp_error(state, "--%s %s: wants a number from %ld to %ld",
			   spec->name, text, spec->min, spec->max);
	return n * unit_of(spec);
}

static error_t take(int key, char *text, struct argp_state *state)
{
	const struct option_spec *spec;

	if (key < FIRST_KEY || key >= FIRST_KEY + MAX_OPTIONS)
		return ARGP_ERR_UNKNOWN;
	spec = (const struct option_spec *)state->input + key - FIRST_KEY;
	if (spec->number)
		*spec->number = number(spec, text, state);
	else if (spec->word)
		*spec->word = text;
	else if (spec->flag)
		*spec->flag = true;
	else
		spec->take(text);
	return 0;
}

/* The help text with range and default; out of range stands for "unset". */
static char *help_of(const struct option_spec *spec)
{
	long value = spec->number ? *spec->number / unit_of(spec) : 0;
	char *text;
	int n;

	if (!spec->number)
		n = asprintf(&text, "%s", spec->help);
	else if (value < spec->min)
		n = asprintf(&text, "%s, %ld..%ld", spec->help, spec->min,
			     spec->max);
	else
		n = asprintf(&text, "%s, %ld..%ld (%ld)", spec->help, spec->min,
			     spec->max, value);
	return n < 0 ? NULL : text;
}

void options_parse(const struct command *command, int argc, char **argv)
{
	struct argp_option table[MAX_OPTIONS + 1] = {};
	const struct argp argp = {
		.options = table, .parser = take, .doc = command->about,
	};
	int i;

	for (i = 0; command->options[i].name; i++)
		table[i] = (struct argp_option){
			.name = command->options[i].name, .key = FIRST_KEY + i,
			.arg = command->options[i].value,
			.doc = help_of(&command->options[i]), .group = 1,
		};
	argp_err_exit_status = EXIT_USAGE;
	argp_parse(&argp, argc, argv, 0, NULL, (void *)command->options);
}
