// SPDX-License-Identifier: GPL-2.0-only
/*
 * Options by a typed table per command: reading, help, and the nearest words
 * for mistakes.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/tool.h"

#define OPTIONS_MAX 48	/* of a command, when the nearest are looked for */

static size_t distance(const char *a, const char *b)
{
	size_t row[64], i, j, diagonal, above, n = strlen(b);

	if (n >= 63 || strlen(a) >= 63)
		return 99;
	for (j = 0; j <= n; j++)
		row[j] = j;
	for (i = 1; a[i - 1]; i++) {
		diagonal = row[0];
		row[0] = i;
		for (j = 1; j <= n; j++) {
			above = row[j];
			row[j] = diagonal + (a[i - 1] != b[j - 1]);
			if (above + 1 < row[j])
				row[j] = above + 1;
			if (row[j - 1] + 1 < row[j])
				row[j] = row[j - 1] + 1;
			diagonal = above;
		}
	}
	return row[n];
}

const char *nearest(const char *word, const char *const *words, size_t n)
{
	size_t i, best = 4, d, len = strlen(word), near = 0;
	static char text[200];
	size_t at = 0;

	/* Words it begins count as near: "re" is record and report. */
	for (i = 0; i < n; i++) {
		d = distance(word, words[i]);
		if (d < best)
			best = d;
	}
	text[0] = 0;
	for (i = 0; i < n; i++) {
		if (!(len > 1 && !strncmp(word, words[i], len)) &&
		    !(best < 4 && best < len && distance(word, words[i]) == best))
			continue;
		at += snprintf(text + at, sizeof(text) - at, "%s%s",
			       near++ ? " or " : "; did you mean ", words[i]);
		if (at >= sizeof(text))
			break;
	}
	if (near)
		strncat(text, "?", sizeof(text) - strlen(text) - 1);
	return text;
}

static size_t count_defs(const struct option_def *defs)
{
	size_t n = 0;

	while (defs[n].name)
		n++;
	return n;
}

static void print_help(const struct command *cmd,
		       const struct option_def *defs)
{
	char left[40];
	size_t i, n = count_defs(defs);

	printf("Usage: pathprof %s%s%s\n\n%s.\n\n", cmd->name,
	       *cmd->synopsis ? " " : "", cmd->synopsis, cmd->summary);
	for (i = 0; i < n; i++) {
		if (defs[i].letter)
			snprintf(left, sizeof(left), "-%c, --%s%s%s",
				 defs[i].letter, defs[i].name,
				 defs[i].arg ? " " : "",
				 defs[i].arg ? defs[i].arg : "");
		else
			snprintf(left, sizeof(left), "    --%s%s%s",
				 defs[i].name, defs[i].arg ? " " : "",
				 defs[i].arg ? defs[i].arg : "");
		printf("  %-22s  %s\n", left, defs[i].help);
	}
	printf("  %-22s  %s\n  %-22s  %s\n", "-h, --help", "show this help",
	       "-V, --version", "show the version");
}

static bool read_number(const struct option_def *d, const char *text,
			double *out)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	if (d->type == OPT_PERCENT && end > text && *end == '%')
		end++;
	if (*text < '0' || *text > '9' || *end || errno || !isfinite(*out))
		return false;
	if (strchr(text, 'x') || strchr(text, 'X'))
		return false;
	if (d->type == OPT_UINT && *out != floor(*out))
		return false;
	return *out >= d->min && *out <= d->max;
}

/* ADDR or ADDR/BITS. */
static bool is_prefix(const char *text)
{
	const char *slash = strchr(text, '/');
	char addr[INET6_ADDRSTRLEN], *end;
	unsigned char bytes[16];
	unsigned long bits = 0;
	size_t len = slash ? (size_t)(slash - text) : strlen(text);

	if (len >= sizeof(addr))
		return false;
	memcpy(addr, text, len);
	addr[len] = 0;
	if (slash) {
		if (slash[1] < '0' || slash[1] > '9')
			return false;
		bits = strtoul(slash + 1, &end, 10);
		if (*end)
			return false;
	}
	if (inet_pton(AF_INET, addr, bytes) == 1)
		return bits <= 32;
	return inet_pton(AF_INET6, addr, bytes) == 1 && bits <= 128;
}

static int set_option(const struct command *cmd, const struct option_def *d,
		      const char *text)
{
	double number;

	switch (d->type) {
	case OPT_FLAG:
		*(bool *)d->value = true;
		return 0;
	case OPT_UINT:
	case OPT_SECONDS:
	case OPT_PERCENT:
		if (!read_number(d, text, &number)) {
			complain("%s: --%s takes %s from %g to %.10g, not "
				 "\"%s\"", cmd->name, d->name,
				 d->type == OPT_UINT ? "a whole number" :
				 d->type == OPT_PERCENT ? "percent" :
				 "seconds", d->min, d->max, text);
			return -2;
		}
		if (d->type == OPT_UINT)
			*(unsigned int *)d->value = number;
		else
			*(double *)d->value = number;
		return 0;
	case OPT_ADDR:
		if (!is_prefix(text)) {
			complain("%s: --%s takes an IPv4 or IPv6 address or "
				 "prefix, not \"%s\"", cmd->name, d->name,
				 text);
			return -2;
		}
		/* fallthrough */
	case OPT_TEXT:
		*(const char **)d->value = text;
		return 0;
	}
	return -2;
}

static int unknown_option(const struct command *cmd,
			  const struct option_def *defs, const char *word)
{
	const char *names[OPTIONS_MAX + 2];
	char dashed[OPTIONS_MAX][32], asked[64];
	size_t i, n = count_defs(defs);

	if (n > OPTIONS_MAX)
		n = OPTIONS_MAX;
	for (i = 0; i < n; i++) {
		snprintf(dashed[i], sizeof(dashed[i]), "--%s", defs[i].name);
		names[i] = dashed[i];
	}
	names[n] = "--help";
	names[n + 1] = "--version";
	snprintf(asked, sizeof(asked), "--%s", word + strspn(word, "-"));
	complain("%s: unknown option \"%s\"%s (see pathprof %s --help)",
		 cmd->name, word, nearest(asked, names, n + 2), cmd->name);
	return -2;
}

static const struct option_def *find_option(const struct option_def *defs,
					    const char *word, size_t len)
{
	for (; defs->name; defs++) {
		if (!strncmp(word, "--", 2) ? strlen(defs->name) == len - 2 &&
		    !strncmp(defs->name, word + 2, len - 2) :
		    len == 2 && defs->letter && word[1] == defs->letter)
			return defs;
	}
	return NULL;
}

int options__read(const struct command *cmd, const struct option_def *defs,
		  int argc, char **argv)
{
	const struct option_def *d;
	const char *word, *value;
	int i, rc;

	for (i = 0; i < argc; i++) {
		word = argv[i];
		if (!strcmp(word, "--"))
			return i + 1;
		if (word[0] != '-' || !word[1])
			return i;
		if (!strcmp(word, "-h") || !strcmp(word, "--help")) {
			print_help(cmd, defs);
			return -1;
		}
		if (!strcmp(word, "-V") || !strcmp(word, "--version")) {
			printf("pathprof %s\n", VERSION);
			return -1;
		}
		value = !strncmp(word, "--", 2) ? strchr(word, '=') : NULL;
		d = find_option(defs, word, value ? (size_t)(value - word) :
				strlen(word));
		if (!d)
			return unknown_option(cmd, defs, word);
		if (d->type == OPT_FLAG && value) {
			complain("%s: --%s takes no value", cmd->name,
				 d->name);
			return -2;
		}
		if (d->type != OPT_FLAG && !value && ++i >= argc) {
			complain("%s: --%s needs %s", cmd->name, d->name,
				 d->arg);
			return -2;
		}
		rc = set_option(cmd, d, value ? value + 1 : argv[i]);
		if (rc)
			return rc;
	}
	return i;
}

int options__status(int rc)
{
	return rc == -1 ? finish_stdout(EXIT_GOOD) : EXIT_USAGE;
}
