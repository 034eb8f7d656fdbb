// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes damaged and hostile files from kept ones.  Most changes are made to
 * JSON values: a file with a flipped byte seldom gets past the parser.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fuzz.h"

#define KEEP_PATHS	4
#define KEEP_HOOKS	2
#define KEEP_PACKETS	6
#define WEIGH		50	/* so that check has packets enough */

uint64_t dice__roll(struct dice *d)
{
	uint64_t x = d->state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

size_t dice__below(struct dice *d, size_t n)
{
	return dice__roll(d) % n;
}

#define PICK(dice, list) \
	((list)[dice__below(dice, sizeof(list) / sizeof(*(list)))])

/* --- Kept files, made small: a mutant is to take a millisecond. --- */

static void keep(json_t *array, size_t n)
{
	while (json_array_size(array) > n)
		json_array_remove(array, json_array_size(array) - 1);
}

static bool passes(const json_t *path, const json_t *id)
{
	const json_t *stages = json_object_get(path, "stages"), *stage;
	size_t i;

	json_array_foreach(stages, i, stage)
		if (json_equal(stage, id))
			return true;
	return false;
}

/* A kept packet's events need theirs, too. */
static bool is_used(const struct seed *seed, const json_t *profile,
		    const json_t *id)
{
	const json_t *list, *o;
	size_t line, i;

	list = json_object_get(profile, "paths");
	json_array_foreach(list, i, o)
		if (passes(o, id))
			return true;
	for (line = 1; line < seed->nlines; line++) {
		list = json_object_get(seed->lines[line], "events");
		json_array_foreach(list, i, o)
			if (json_equal(json_object_get(o, "stage"), id))
				return true;
	}
	return false;
}

static void shrink(const struct seed *seed, json_t *profile)
{
	json_t *paths = json_object_get(profile, "paths"), *path, *n;
	json_t *stages = json_object_get(profile, "stages");
	size_t i;

	keep(json_object_get(profile, "hooks"), KEEP_HOOKS);
	/* Not the first ones: sent and received packets are wanted. */
	for (i = 0; json_array_size(paths) > KEEP_PATHS; i += 2)
		json_array_remove(paths, i % json_array_size(paths));
	for (i = json_array_size(stages); i--;)
		if (!is_used(seed, profile, json_object_get(
			     json_array_get(stages, i), "id")))
			json_array_remove(stages, i);
	json_array_foreach(paths, i, path) {
		n = json_object_get(path, "packets");
		json_integer_set(n, json_integer_value(n) * WEIGH);
	}
}

static void collect_words(struct seeds *s, const json_t *v)
{
	const char *key;
	json_t *member;
	size_t i;

	if (json_is_string(v)) {
		for (i = 0; i < s->nwords; i++)
			if (!strcmp(s->words[i], json_string_value(v)))
				return;
		if (s->nwords < sizeof(s->words) / sizeof(*s->words))
			s->words[s->nwords++] = json_string_value(v);
	}
	json_object_foreach((json_t *)v, key, member)
		collect_words(s, member);
	json_array_foreach(v, i, member)
		collect_words(s, member);
}

static struct text dump(json_t *const *lines, size_t n, size_t flags)
{
	struct text t = {};
	FILE *f = open_memstream(&t.bytes, &t.length);
	size_t i;

	for (i = 0; i < n; i++) {
		json_dumpf(lines[i], f, flags | JSON_ENCODE_ANY);
		putc('\n', f);
	}
	fclose(f);
	return t;
}

void seeds__read(struct seeds *s, const char *path)
{
	struct seed *seed = &s->list[s->n];
	json_error_t error;
	json_t *root;
	FILE *f = fopen(path, "re");
	const char *format;

	if (s->n == SEEDS || !f) {
		fprintf(stderr, "fuzz: cannot take %s\n", path);
		exit(2);
	}
	seed->lines = calloc(KEEP_PACKETS + 1, sizeof(*seed->lines));
	while (seed->nlines <= KEEP_PACKETS) {
		root = json_loadf(f, JSON_DISABLE_EOF_CHECK, &error);
		if (!root)
			break;
		seed->lines[seed->nlines++] = root;
	}
	fclose(f);
	root = seed->nlines ? seed->lines[0] : NULL;
	format = json_string_value(json_object_get(root, "format"));
	seed->events = format && !strcmp(format, "pathprof-events");
	if (seed->events)
		json_object_set_new(root, "packets",
				    json_integer(seed->nlines - 1));
	else if (!format || strcmp(format, "pathprof-profile")) {
		fprintf(stderr, "fuzz: %s is no file of pathprof\n", path);
		exit(2);
	}
	shrink(seed, seed->events ? json_object_get(root, "profile") : root);
	for (size_t i = 0; i < seed->nlines; i++)
		collect_words(s, seed->lines[i]);
	seed->text = dump(seed->lines, seed->nlines, JSON_COMPACT);
	s->n++;
}

/* --- Hostile values --- */

static json_t *hostile_number(struct dice *d, const json_t *was)
{
	static const json_int_t numbers[] = {
		0, 1, 2, -1, 3, 6, 31, 32, 40, 63, 64, 100, 191, 192, 255, 256,
		4096, UINT16_MAX, 65536, INT32_MAX, 2147483648, UINT32_MAX,
		4294967296, 1LL << 53, (1LL << 53) + 1, 1LL << 62, INT64_MAX,
		INT64_MAX - 1, INT64_MAX / 2, INT64_MAX / 100, INT64_MIN,
	};
	static const double reals[] = { 0.5, -0.0, 1e300, 1.0, -1e-300, 9.3e18 };
	json_int_t value = json_integer_value(was);

	switch (dice__below(d, 16)) {
	case 0:
		return json_real(PICK(d, reals));
	case 1:
		return json_integer((uint64_t)value + 1 -
				    2 * dice__below(d, 2));
	case 2:
	case 3:
		return json_integer(dice__roll(d) >> (1 + dice__below(d, 63)));
	case 4:
	case 5:
		return json_integer((uint64_t)value * 1000);
	default:
		return json_integer(PICK(d, numbers));
	}
}

static json_t *hostile_text(const struct seeds *s, struct dice *d)
{
	static const char *const pieces[] = {
		"\033[31m", "\033]0;x\007", "\302\233", "\177", "\n", "\r",
		"\t", "</text>", "]]>", "&", "&lt;", "\"", "'", "\\", "%s%n",
		",", ";", ">", "<", " ", "=", "A", "rx", "drop:", "\303\251",
		"\342\202\254", "\360\237\230\200", "\357\277\277",
		"\357\277\276", "\342\200\256", "\302\205", "0", "-1",
	};
	static const size_t lengths[] = {
		0, 1, 2, 7, 14, 15, 16, 31, 32, 45, 47, 55, 63, 64, 79, 80, 95,
		96, 255, 256, 5000, 70000,
	};
	size_t length = PICK(d, lengths), at = 0, n;
	char *text;
	const char *piece;
	json_t *v;

	if (dice__once_in(d, 3))
		return json_string(s->words[dice__below(d, s->nwords)]);
	text = calloc(1, length + 32);
	piece = PICK(d, pieces);
	while (at < length) {
		if (!dice__once_in(d, 3))
			piece = PICK(d, pieces);
		n = strlen(piece);
		/* Exactly as long as wanted: limits are met from below. */
		if (at + n > length) {
			piece = "z";
			n = 1;
		}
		memcpy(text + at, piece, n);
		at += n;
	}
	v = json_string(text);
	free(text);
	return v;
}

static json_t *deep(struct dice *d)
{
	size_t depth = 1 + dice__below(d, dice__once_in(d, 4) ? 3000 : 20);
	bool arrays = dice__once_in(d, 2);
	json_t *v = json_integer(1), *outer;

	while (depth--) {
		outer = arrays ? json_array() : json_object();
		if (arrays)
			json_array_append_new(outer, v);
		else
			json_object_set_new(outer, "a", v);
		v = outer;
	}
	return v;
}

static json_t *hostile(const struct seeds *s, struct dice *d,
		       const json_t *was)
{
	json_t *v;
	size_t n;

	switch (dice__below(d, 32)) {
	case 0:
		return json_null();
	case 1:
		return json_boolean(dice__once_in(d, 2));
	case 2:
		return deep(d);
	case 3:
		return json_array();
	case 4:
		v = json_array();
		for (n = dice__below(d, 300); n; n--)
			json_array_append_new(v, hostile_number(d, was));
		return v;
	case 5:
		return json_object();
	case 6:
		return hostile_text(s, d);
	case 7:
		return hostile_number(d, was);
	default:	/* of the type it had: that gets further */
		return json_is_string(was) ? hostile_text(s, d) :
		       json_is_boolean(was) ? json_boolean(!json_is_true(was)) :
		       hostile_number(d, was);
	}
}

/* --- Structure --- */

/* A member of an object or array. */
struct place {
	json_t *in;
	const char *key;
	size_t at;
};

static json_t *value_at(const struct place *p)
{
	return p->key ? json_object_get(p->in, p->key) :
	       json_array_get(p->in, p->at);
}

static void set_at(const struct place *p, json_t *v)
{
	if (p->key)
		json_object_set_new(p->in, p->key, v);
	else
		json_array_set_new(p->in, p->at, v);
}

static bool find_place(struct dice *d, json_t *root, struct place *p)
{
	json_t *v = root;
	void *iter;
	size_t n;

	p->in = NULL;
	for (;;) {
		n = json_is_object(v) ? json_object_size(v) : json_array_size(v);
		if (!n || (p->in && dice__once_in(d, 8)))
			return p->in;
		p->in = v;
		p->at = dice__below(d, n);
		p->key = NULL;
		if (json_is_object(v)) {
			iter = json_object_iter(v);
			for (n = p->at; n; n--)
				iter = json_object_iter_next(v, iter);
			p->key = json_object_iter_key(iter);
		}
		v = value_at(p);
	}
}

/* The same again and again, each a little different. */
static void multiply(const struct seeds *s, struct dice *d, json_t *array,
		     json_t *v)
{
	size_t n = 1 + dice__below(d, dice__once_in(d, 10) ? 5000 : 40);
	struct place p;
	json_t *copy;

	if (json_is_object(v) && n > 400)
		n = 400;
	while (n--) {
		copy = json_deep_copy(v);
		if (find_place(d, copy, &p))
			set_at(&p, hostile(s, d, value_at(&p)));
		json_array_append_new(array, copy);
	}
}

static void change(const struct seeds *s, struct dice *d, json_t *root)
{
	struct place p, other;

	if (!find_place(d, root, &p))
		return;
	switch (dice__below(d, 12)) {
	case 0:
		if (p.key)
			json_object_del(p.in, p.key);
		else
			json_array_remove(p.in, p.at);
		break;
	case 1:
		if (!p.key)
			json_array_insert_new(p.in, p.at,
					      json_deep_copy(value_at(&p)));
		break;
	case 2:
		if (!p.key)
			multiply(s, d, p.in, value_at(&p));
		break;
	case 3:
		/* A copy first: either may hold the other. */
		if (find_place(d, root, &other))
			set_at(&p, json_deep_copy(value_at(&other)));
		break;
	default:
		set_at(&p, hostile(s, d, value_at(&p)));
	}
}

static void change_lines(struct dice *d, json_t **lines, size_t *n)
{
	size_t at = dice__below(d, *n), i;
	json_t *line;

	switch (dice__below(d, 3)) {
	case 0:
		if (*n < 2)
			break;
		json_decref(lines[at]);
		for (i = at + 1; i < *n; i++)
			lines[i - 1] = lines[i];
		(*n)--;
		break;
	case 1:
		lines[*n] = json_deep_copy(lines[at]);
		(*n)++;
		break;
	default:
		i = dice__below(d, *n);
		line = lines[i];
		lines[i] = lines[at];
		lines[at] = line;
	}
	if (!dice__once_in(d, 4))
		json_object_set_new(lines[0], "packets", json_integer(*n - 1));
}

#define CHANGES 6

static struct text mutate_structure(const struct seeds *s, struct dice *d,
				    const struct seed *seed)
{
	static const size_t flags[] = {
		JSON_COMPACT, JSON_COMPACT, JSON_COMPACT | JSON_ENSURE_ASCII,
		JSON_COMPACT | JSON_SORT_KEYS, JSON_COMPACT | JSON_ESCAPE_SLASH,
	};
	json_t *lines[KEEP_PACKETS + 1 + CHANGES];
	size_t n = seed->nlines, i;
	struct text t;

	for (i = 0; i < n; i++)
		lines[i] = json_deep_copy(seed->lines[i]);
	/* Mostly one: each may be what the file is refused for. */
	for (i = 1 + dice__below(d, 1 + dice__below(d, CHANGES)); i; i--) {
		if (seed->events && dice__once_in(d, 6))
			change_lines(d, lines, &n);
		else
			change(s, d, lines[dice__below(d, n)]);
	}
	t = dump(lines, n, PICK(d, flags));
	for (i = 0; i < n; i++)
		json_decref(lines[i]);
	return t;
}

/* --- Bytes --- */

static void splice(struct text *t, size_t at, size_t cut, const char *in,
		   size_t n)
{
	char *bytes = malloc(t->length - cut + n + 1);

	memcpy(bytes, t->bytes, at);
	memcpy(bytes + at, in, n);
	memcpy(bytes + at + n, t->bytes + at + cut, t->length - at - cut);
	free(t->bytes);
	t->bytes = bytes;
	t->length += n - cut;
}

static void change_bytes(const struct seeds *s, struct dice *d, struct text *t)
{
	static const char *const tokens[] = {
		"\"sample\":1,", "{", "}", "[", "]", ",", "\"", "\\u0000",
		"\\ud800", "\\u001b", "-", "9", "e9", "1e400", "0.1",
		"99999999999999999999", "null", "\n", "\n\n", "\377", "\302\233",
		"\357\273\277", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[", "{\"a\":",
	};
	size_t at = dice__below(d, t->length + 1), left = t->length - at, n;
	const struct seed *other;
	const char *token;
	char byte;

	switch (dice__below(d, 6)) {
	case 0:
		if (left)
			t->bytes[at] ^= 1 << dice__below(d, 8);
		break;
	case 1:
		byte = dice__roll(d);
		splice(t, at, 0, &byte, 1);
		break;
	case 2:
		n = 1 + dice__below(d, 40);
		splice(t, at, n < left ? n : left, "", 0);
		break;
	case 3:
		t->length = at;
		break;
	case 4:
		token = PICK(d, tokens);
		splice(t, at, 0, token, strlen(token));
		break;
	default:
		other = &s->list[dice__below(d, s->n)];
		n = dice__below(d, other->text.length);
		splice(t, at, left, other->text.bytes + n,
		       other->text.length - n);
	}
}

struct text mutate(const struct seeds *s, struct dice *d, bool *events)
{
	const struct seed *seed = &s->list[dice__below(d, s->n)];
	struct text t;
	size_t i;

	*events = seed->events;
	if (!dice__once_in(d, 8))
		return mutate_structure(s, d, seed);
	t.length = seed->text.length;
	t.bytes = malloc(t.length + 1);
	memcpy(t.bytes, seed->text.bytes, t.length);
	for (i = 1 + dice__below(d, 4); i; i--)
		change_bytes(s, d, &t);
	return t;
}
