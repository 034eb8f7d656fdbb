// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads members of JSON objects and checks their types and ranges.  The name of
 * the first bad one is kept, and reading continues with zeros.
 */
#include <stdio.h>
#include <string.h>
#include "base/reader.h"

/*
 * A full table of paths has 13 MB and 700 thousand values.  Values are limited,
 * too: "{}," has 3 bytes in a file and hundreds in memory.
 */
#define BYTES_MAX	(64 << 20)
#define VALUES_MAX	(1 << 20)

struct source {
	FILE *f;
	bool line, ended;
	size_t bytes, values;
};

static bool is_too_large(const struct source *s)
{
	return s->bytes > BYTES_MAX || s->values > VALUES_MAX;
}

static size_t feed(void *buffer, size_t size, void *arg)
{
	struct source *s = arg;
	char *out = buffer;
	size_t n = 0;
	int c;

	while (n < size && !s->ended && (c = getc_unlocked(s->f)) != EOF) {
		out[n++] = c;
		s->values += c == ',' || c == '[' || c == '{';
		s->ended = s->line && c == '\n';
	}
	s->bytes += n;
	return is_too_large(s) ? (size_t)-1 : n;
}

json_t *reader__json(FILE *f, bool line, int *at)
{
	struct source s = { .f = f, .line = line };
	json_error_t error;
	json_t *root = json_load_callback(feed, &s, JSON_REJECT_DUPLICATES,
					  &error);

	*at = is_too_large(&s) ? -1 : s.bytes ? error.line : 0;
	return root;
}

void reader__refuse(struct reader *r, const char *what, const char *where)
{
	if (!r->bad)
		snprintf(r->err, r->len, "damaged: \"%s\" %s", where, what);
	r->bad = true;
}

uint64_t reader__number(struct reader *r, const json_t *o, const char *key,
			uint64_t max)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_integer(v) || json_integer_value(v) < 0 ||
	    (uint64_t)json_integer_value(v) > max) {
		reader__refuse(r, v ? "is out of range" : "is missing", key);
		return 0;
	}
	return json_integer_value(v);
}

void reader__text(struct reader *r, const json_t *o, const char *key,
		  char *out, size_t size)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_string(v) || json_string_length(v) >= size)
		reader__refuse(r, v ? "is not a short text" : "is missing",
			       key);
	else
		snprintf(out, size, "%s", json_string_value(v));
}

const json_t *reader__array(struct reader *r, const json_t *o,
			    const char *key, size_t max)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_array(v) || json_array_size(v) > max) {
		reader__refuse(r, v ? "is not a list of this size" :
			       "is missing", key);
		return NULL;
	}
	return v;
}

const json_t *reader__object(struct reader *r, const json_t *o,
			     const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (!json_is_object(v))
		reader__refuse(r, v ? "is not an object" : "is missing", key);
	return v;
}

unsigned int reader__word(struct reader *r, const json_t *o,
			  const char *key, unsigned int max,
			  const char *(*name)(unsigned int))
{
	const char *text = json_string_value(json_object_get(o, key));
	unsigned int i;

	for (i = 0; text && i < max; i++)
		if (name(i) && !strcmp(name(i), text))
			return i;
	reader__refuse(r, "is not a known word", key);
	return 0;
}

/* A list of words as the bits they stand for. */
void reader__words(struct reader *r, const json_t *o, const char *key,
		   const char *(*name)(unsigned int), uint32_t *bits)
{
	const json_t *a = reader__array(r, o, key, 32);
	const char *text;
	unsigned int bit;
	size_t i;

	for (i = 0; a && i < json_array_size(a); i++) {
		text = json_string_value(json_array_get(a, i));
		for (bit = 0; text && bit < 32; bit++)
			if (name(bit) && !strcmp(name(bit), text))
				break;
		if (!text || bit == 32)
			reader__refuse(r, "holds an unknown word", key);
		else
			*bits |= 1U << bit;
	}
}
