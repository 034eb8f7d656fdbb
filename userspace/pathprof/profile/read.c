// SPDX-License-Identifier: GPL-2.0-only
/*
 * The one reader of profile files
 * (Documentation/reference/profile-format.rst).  It trusts nothing: whatever
 * is missing, of the wrong type or out of range refuses the file with the
 * place named.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/reader.h"
#include "profile/profile.h"

#define TOO_MUCH "adds up to more than can be counted"

static void get_numbers(struct reader *r, const json_t *o, const char *key,
			void *numbers, size_t max)
{
	const json_t *a = reader__array(r, o, key, max), *v;
	uint64_t *out = numbers;
	size_t i;

	for (i = 0; a && i < json_array_size(a); i++) {
		v = json_array_get(a, i);
		if (!json_is_integer(v) || json_integer_value(v) < 0)
			reader__refuse(r, "holds no count", key);
		else
			out[i] = json_integer_value(v);
	}
}

static void read_stage(struct reader *r, const json_t *o, struct profile *p)
{
	uint64_t id = reader__number(r, o, "id", PATHPROF_STAGE_MAX - 1);
	struct profile_stage *s = &p->stages[id];

	s->known = true;
	reader__text(r, o, "name", s->name, sizeof(s->name));
	reader__text(r, o, "meaning", s->meaning, sizeof(s->meaning));
	reader__text(r, o, "hooks", s->hooks, sizeof(s->hooks));
	s->dir = reader__word(r, o, "direction", 3, dir_name);
	s->kind = reader__word(r, o, "kind", 3, kind_name);
	s->order = reader__number(r, o, "order", UINT16_MAX);
	s->available = json_is_true(json_object_get(o, "available"));
	if (json_object_get(o, "times"))
		get_numbers(r, reader__object(r, o, "times"), "histogram",
			    p->stage_hist[id], HIST_BUCKETS);
}

static void read_hook(struct reader *r, const json_t *o, struct profile *p)
{
	struct profile_hook *h = &p->hooks[p->nhooks++];

	reader__text(r, o, "name", h->name, sizeof(h->name));
	reader__text(r, o, "type", h->type, sizeof(h->type));
	reader__text(r, o, "why", h->why, sizeof(h->why));
	h->state = reader__word(r, o, "state", 4, hook_state_name);
	h->missed = reader__number(r, o, "missed", INT64_MAX);
}

/*
 * Back to what was measured: times in memory begin as such.  False if that is
 * more than can be counted.
 */
static bool add_probe(const struct profile *p, struct profile_path *path)
{
	struct path_value *v = &path->sum;
	__u64 *sum;
	size_t i;

	for (i = 0; i < path->key.n; i++) {
		sum = p->stages[path->key.stages[i]].kind == KIND_WAIT ?
		      &v->wait_ns : &v->work_ns;
		*sum += path->probe_ns[i];
		v->stage_ns[i] += path->probe_ns[i];
		if (*sum > INT64_MAX || v->stage_ns[i] > INT64_MAX)
			return false;
	}
	return true;
}

/* (4) The function that dropped them, where it is known. */
static void read_location(struct reader *r, const json_t *o,
			  struct profile *p, struct path_key *k)
{
	char name[sizeof(p->locations[0])] = "";

	reader__text(r, o, "location", name, sizeof(name));
	k->location = profile__add_location(p, name);
	if (!k->location)
		reader__refuse(r, "is empty, or one of too many", "location");
}

/* Of the packets of a path; most recordings have none. */
static void read_states(struct reader *r, const json_t *path,
			struct path_state *s)
{
	const json_t *all = json_object_get(path, "state"), *o;
	int i;

	if (!all)
		return;
	s->packets = reader__number(r, all, "packets", INT64_MAX);
	for (i = 0; i < STATE_MAX; i++) {
		o = json_object_get(all, state_name(i));
		if (!o)
			continue;
		s->least[i] = reader__number(r, o, "least", UINT32_MAX);
		s->most[i] = reader__number(r, o, "most", UINT32_MAX);
		s->sum[i] = reader__number(r, o, "sum", INT64_MAX);
		if (s->least[i] > s->most[i])
			reader__refuse(r, "is above the highest", "least");
	}
}

static void read_path(struct reader *r, const json_t *o, struct profile *p)
{
	const json_t *stages = reader__array(r, o, "stages", PATH_STAGES);
	struct profile_path path = {};
	struct profile_path *to;
	struct path_key *k = &path.key;
	struct path_value *v = &path.sum;
	json_int_t id;
	size_t before, i;

	k->dir = reader__word(r, o, "direction", 3, dir_name);
	k->family = reader__number(r, o, "family", 6);
	k->end = reader__word(r, o, "end", PATHPROF_END_MAX, end_word);
	k->reason = reader__number(r, o, "reason", UINT32_MAX);
	if (json_object_get(o, "location"))
		read_location(r, o, p, k);
	reader__words(r, o, "flags", flag_name, &k->flags);
	if (r->version > 1)
		reader__words(r, o, "facts", fact_name, &k->facts);
	for (i = 0; stages && i < json_array_size(stages); i++) {
		id = json_integer_value(json_array_get(stages, i));
		if (id <= 0 || id >= PATHPROF_STAGE_MAX ||
		    !p->stages[id].known) {
			reader__refuse(r, "names no stage of this file",
				       "stages");
			return;
		}
		k->stages[k->n++] = id;
	}
	v->packets = reader__number(r, o, "packets", INT64_MAX);
	v->segments = reader__number(r, o, "segments", INT64_MAX);
	v->bytes = reader__number(r, o, "bytes", INT64_MAX);
	v->work_ns = reader__number(r, o, "work_ns", INT64_MAX);
	v->wait_ns = reader__number(r, o, "wait_ns", INT64_MAX);
	get_numbers(r, o, "stage_ns", v->stage_ns, k->n);
	get_numbers(r, o, "histogram", v->hist, HIST_BUCKETS);
	read_states(r, o, &path.state);
	if (r->version > 2)
		get_numbers(r, o, "stage_probe_ns", path.probe_ns, k->n);
	if (r->subtracted && !add_probe(p, &path))
		reader__refuse(r, TOO_MUCH, "stage_probe_ns");
	if (r->bad)
		return;
	before = p->npaths;
	to = profile__path(p, k);
	if (!to)
		reader__refuse(r, "does not fit into memory", "paths");
	else if (p->npaths == before)
		reader__refuse(r, "has one path twice", "paths");
	else
		*to = path;
}

static void read_probe(struct reader *r, const json_t *root,
		       struct profile *p)
{
	const json_t *o = reader__object(r, root, "probe");

	p->probe_known = json_is_true(json_object_get(o, "known"));
	r->subtracted = json_is_true(json_object_get(o, "subtracted"));
#define COST(name) \
	p->probe.name = reader__number(r, o, #name "_ns", INT64_MAX);
	PROBE_COSTS(COST)
#undef COST
}

static void read_reasons(struct reader *r, const json_t *root,
			 struct profile *p)
{
	json_t *o = (json_t *)reader__object(r, root, "reasons"), *v;
	struct profile_reason *reason;
	unsigned long number;
	const char *key;
	char *end;

	if (r->bad)
		return;
	json_object_foreach(o, key, v) {
		errno = 0;
		number = strtoul(key, &end, 10);
		reason = errno || *end || end == key || number > UINT32_MAX ?
			 NULL : profile__add_reason(p, number);
		if (!reason)
			reader__refuse(r, "holds no reason number", "reasons");
		else
			reader__text(r, o, key, reason->name,
				     sizeof(reason->name));
	}
}

/* The version of the format that first counts this end. */
static int end_since(unsigned int end)
{
	if (end >= END_FORWARDED)
		return 4;
	return end == END_CUT ? 2 : 1;
}

static void read_account(struct reader *r, const json_t *root,
			 struct profile *p)
{
	const json_t *account = reader__object(r, root, "account");
	const json_t *counters = reader__object(r, root, "counters");
	size_t i;

	p->counters[CN_SAMPLED] = reader__number(r, account, "sampled",
						 INT64_MAX);
	p->followed = reader__number(r, account, "in_flight", INT64_MAX);
	for (i = 1; i < PATHPROF_END_MAX; i++)
		if (end_word(i) && r->version >= end_since(i))
			p->ends[i] = reader__number(r, account, end_word(i),
						    INT64_MAX);
	for (i = 1; i < PATHPROF_COUNTER_MAX; i++)
		if (counter_name(i) && (r->version > 1 || i != CN_BURSTS) &&
		    (i < CN_SPLIT || json_object_get(counters,
						     counter_name(i))))
			p->counters[i] = reader__number(r, counter_is_loss(i) ?
							account : counters,
							counter_name(i),
							INT64_MAX);
}

/* An option that was given or not: missing if not. */
static bool read_asked(struct reader *r, const json_t *o, const char *key)
{
	const json_t *value = json_object_get(o, key);

	if (value && !json_is_boolean(value))
		reader__refuse(r, "is not true or false", key);
	return json_is_true(value);
}

static void read_root(struct reader *r, const json_t *root, struct profile *p)
{
	const json_t *o, *command = json_object_get(root, "command");
	size_t i;

	reader__text(r, reader__object(r, root, "tool"), "version",
		     p->tool_version, sizeof(p->tool_version));
	o = reader__object(r, root, "kernel");
	reader__text(r, o, "release", p->release, sizeof(p->release));
	reader__text(r, o, "machine", p->machine, sizeof(p->machine));
	reader__text(r, root, "started", p->started, sizeof(p->started));
	p->duration_ns = reader__number(r, root, "duration_ns", INT64_MAX);
	p->probe_ns = reader__number(r, root, "probe_ns", INT64_MAX);
	if (r->version > 2)
		read_probe(r, root, p);
	p->open_ns = r->version > 1 ?
		     reader__number(r, root, "open_ns", INT64_MAX) :
		     p->duration_ns;
	o = reader__object(r, root, "config");
	p->sample = reader__number(r, o, "sample", INT32_MAX);
	if (r->version > 1)
		p->budget_ppm = reader__number(r, o, "budget_ppm", INT32_MAX);
	p->port = reader__number(r, o, "port", UINT16_MAX);
	reader__text(r, o, "addr", p->addr, sizeof(p->addr));
	if (json_object_get(o, "filter"))
		reader__text(r, o, "filter", p->filter, sizeof(p->filter));
	p->udp = read_asked(r, o, "udp");
	p->icmp = read_asked(r, o, "icmp");
	p->fine = read_asked(r, o, "fine");
	p->command_status = reader__number(r, root, "command_status", 255);
	if (json_is_string(command))
		p->command = strdup(json_string_value(command));
	else if (!json_is_null(command))
		reader__refuse(r, "is no text", "command");
	if (json_object_get(root, "load")) {
		o = reader__object(r, root, "load");
		p->load_ns = reader__number(r, o, "ns", INT64_MAX);
		p->load_packets = reader__number(r, o, "packets", INT64_MAX);
		if (json_object_get(o, "bytes"))
			p->load_bytes = reader__number(r, o, "bytes", INT64_MAX);
	}
	read_account(r, root, p);
	read_reasons(r, root, p);
	/* The file's own stage table counts, not the one of this build. */
	memset(p->stages, 0, sizeof(p->stages));
	o = reader__array(r, root, "stages", PATHPROF_STAGE_MAX);
	for (i = 0; o && i < json_array_size(o); i++)
		read_stage(r, json_array_get(o, i), p);
	o = reader__array(r, root, "hooks", PROFILE_HOOKS);
	for (i = 0; o && i < json_array_size(o); i++)
		read_hook(r, json_array_get(o, i), p);
	o = reader__array(r, root, "paths", PROFILE_PATHS);
	for (i = 0; o && i < json_array_size(o) && !r->bad; i++)
		read_path(r, json_array_get(o, i), p);
	if (!r->bad && !p->sample)
		reader__refuse(r, "is 0", "sample");
	if (!r->bad && !profile__fits(p))
		reader__refuse(r, TOO_MUCH, "paths or account");
}

/* Is it ours at all, and of a version we know? */
static int check_format(const json_t *root, char *err, size_t len)
{
	const char *format;
	const json_t *version;

	format = json_string_value(json_object_get(root, "format"));
	if (!format || strcmp(format, PROFILE_FORMAT)) {
		snprintf(err, len, "not a pathprof profile (its \"format\" "
			 "is not \"%s\")", PROFILE_FORMAT);
		return -EINVAL;
	}
	version = json_object_get(root, "version");
	if (!json_is_integer(version) || json_integer_value(version) < 1) {
		snprintf(err, len, "damaged: it has no format version");
		return -EINVAL;
	}
	if (json_integer_value(version) > PROFILE_VERSION) {
		snprintf(err, len, "written by a newer pathprof (format "
			 "version %lld, this one reads up to %d); use that "
			 "version to read it",
			 (long long)json_integer_value(version),
			 PROFILE_VERSION);
		return -EINVAL;
	}
	return 0;
}

static json_t *load(const char *path, char *err, size_t len)
{
	json_t *root = NULL;
	struct stat st;
	FILE *f;
	int at;

	f = fopen(path, "re");
	if (!f || fstat(fileno(f), &st)) {
		snprintf(err, len, "%s", strerror(errno));
	} else if (S_ISDIR(st.st_mode)) {
		snprintf(err, len, "it is a directory");
	} else {
		root = reader__json(f, false, &at);
		if (!root && at < 0)
			snprintf(err, len, READER_TOO_LARGE);
		else if (!root && !at)
			snprintf(err, len, "empty or unreadable");
		else if (!root)
			snprintf(err, len, "not JSON, or cut short (line %d)",
				 at);
	}
	if (f)
		fclose(f);
	return root;
}

int profile__from_json(struct profile *p, const json_t *root, char *err,
		       size_t len)
{
	struct reader r = { .err = err, .len = len };

	profile__init(p);
	if (check_format(root, err, len))
		return -EINVAL;
	r.version = json_integer_value(json_object_get(root, "version"));
	read_root(&r, root, p);
	return r.bad ? -EINVAL : 0;
}

int profile__read(struct profile *p, const char *path, char *err, size_t len)
{
	char why[256] = "";
	json_t *root = load(path, why, sizeof(why));
	int rc = -EINVAL;

	profile__init(p);
	if (root)
		rc = profile__from_json(p, root, why, sizeof(why));
	json_decref(root);
	if (rc) {
		snprintf(err, len, "cannot read %s: %s", path, why);
		profile__free(p);
	}
	return rc;
}

int profile__view(struct profile *p, const char *path, bool raw, char *err,
		  size_t len)
{
	int rc = profile__read(p, path, err, len);

	if (!rc && !raw)
		profile__subtract(p);
	return rc;
}
