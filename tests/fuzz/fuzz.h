/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the fuzzer share: mutate.c makes files from kept ones,
 * views.c hands them to pathprof's commands, judge.c looks at what these print,
 * fuzz.c is the loop and the command line.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Numbers from a seed; the same ones on every machine. */
struct dice {
	uint64_t state;
};

uint64_t dice__roll(struct dice *d);
size_t dice__below(struct dice *d, size_t n);
/* True once in n. */
static inline bool dice__once_in(struct dice *d, size_t n)
{
	return !dice__below(d, n);
}

struct text {
	char *bytes;
	size_t length;
};

/* A kept file: its text, and the JSON value of each of its lines. */
struct seed {
	bool events;
	json_t **lines;
	size_t nlines;
	struct text text;
};

#define SEEDS 16
struct seeds {
	struct seed list[SEEDS];
	size_t n;
	const char *words[512];	/* all texts in them */
	size_t nwords;
};

/* Exits with a message if pathprof did not write the file. */
void seeds__read(struct seeds *s, const char *path);
/* The caller frees it.  @events: made from an events file, not from a profile. */
struct text mutate(const struct seeds *s, struct dice *d, bool *events);

/*
 * Run commands on the files `mutant` and `seed` of the current folder, some of
 * them chosen by the dice.  NULL, or what was wrong with the view `shown`.
 */
const char *views__run(struct dice *d, bool events, char *shown, size_t size,
		       bool *accepted);
/* Bytes that are allocated and not freed. */
extern size_t allocated;
/* Where the commands' output goes from now on. */
void views__begin(void);

/* NULL, or what is wrong with what a command printed. */
const char *judge__text(const char *text, size_t n);
const char *judge__json(const char *text, size_t n);
const char *judge__svg(const char *text, size_t n);
/* The judges against what they must refuse; NULL if they do. */
const char *judge__selves(void);

#endif
