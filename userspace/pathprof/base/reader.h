/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the readers of profiles and of events, which trust nothing.
 */
#ifndef PATHPROF_READER_H
#define PATHPROF_READER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct reader {
	char *err;
	size_t len;
	int version;		/* of the file */
	bool subtracted;	/* pathprof's own cost is off its times */
	bool bad;
};

#define READER_TOO_LARGE	"too large: more than 64 MB, or a million values"

/*
 * The JSON that is left of a file, or its next line only.  NULL: it is none; at
 * is the line in it where that shows, 0 if there is nothing, -1 if it is too
 * large, or memory too small.
 */
json_t *reader__json(FILE *f, bool line, int *at);
void reader__refuse(struct reader *r, const char *what, const char *where);
uint64_t reader__number(struct reader *r, const json_t *o, const char *key,
			uint64_t max);
void reader__text(struct reader *r, const json_t *o, const char *key,
		  char *out, size_t size);
const json_t *reader__array(struct reader *r, const json_t *o,
			    const char *key, size_t max);
const json_t *reader__object(struct reader *r, const json_t *o,
			     const char *key);
/* The number, below max, that a word stands for. */
unsigned int reader__word(struct reader *r, const json_t *o, const char *key,
			  unsigned int max,
			  const char *(*name)(unsigned int));
/* A list of words as the bits they stand for. */
void reader__words(struct reader *r, const json_t *o, const char *key,
		   const char *(*name)(unsigned int), uint32_t *bits);

#endif
