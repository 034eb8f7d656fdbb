// SPDX-License-Identifier: GPL-2.0-only
/*
 * Groups a profile's packets.  Paths whose labels and stages are the same are
 * one row.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/tool.h"
#include "profile/group.h"
#include "profile/stats.h"

const char *group_name(enum group_by by)
{
	static const char *const names[GROUPINGS] = {
		"path", "stage", "end", "port", "device", "namespace",
		"cgroup", "CPU",
	};

	return names[by];
}

/* The row of a name, added if new; NULL without memory. */
static struct group_row *row_of(struct group *g, const char *name,
				const struct profile_path *path)
{
	struct group_row *r, *grown;
	size_t i;

	for (i = 0; i < g->n; i++) {
		r = &g->rows[i];
		if (!strcmp(r->name, name) && (!path || !r->path ||
		    (r->path->key.n == path->key.n &&
		     !memcmp(r->path->key.stages, path->key.stages,
			     PATH_STAGES))))
			return r;
	}
	if (!(g->n & (g->n - 1))) {
		grown = reallocarray(g->rows, g->n ? g->n * 2 : 1, sizeof(*r));
		if (!grown)
			return NULL;
		g->rows = grown;
	}
	r = &g->rows[g->n++];
	memset(r, 0, sizeof(*r));
	snprintf(r->name, sizeof(r->name), "%s", name);
	r->path = path;
	return r;
}

static int by_path(const struct profile *p, struct group *g)
{
	label_text *names = labels(p, true);
	struct group_row *r;
	size_t i;

	for (i = 0; names && i < p->npaths; i++) {
		r = row_of(g, names[i], &p->paths[i]);
		if (!r)
			break;
		path__add(&r->sum, &p->paths[i].sum);
		r->quantiles = true;
	}
	free(names);
	return names && i == p->npaths ? 0 : -ENOMEM;
}

static int by_stage(const struct profile *p, struct group *g)
{
	const struct profile_path *path;
	const struct profile_stage *s;
	struct path_value times;
	struct group_row *r;
	char name[64], clean[32];
	unsigned int id, at;
	size_t i;

	for (i = 0; i < p->npaths; i++) {
		path = &p->paths[i];
		for (at = 0; at < path->key.n && at < PATH_STAGES; at++) {
			s = profile__stage(p, &path->key, at);
			id = s - p->stages;
			snprintf(name, sizeof(name), "%s %s%s",
				 dir_name(s->dir) ?: "",
				 printable(s->name, clean, sizeof(clean)),
				 s->kind == KIND_WAIT ? " (wait)" : "");
			r = row_of(g, name, NULL);
			if (!r)
				return -ENOMEM;
			r->sum.packets += path->sum.packets;
			r->sum.segments += path->sum.segments;
			r->sum.bytes += path->sum.bytes;
			if (s->kind == KIND_WAIT)
				r->sum.wait_ns += path->sum.stage_ns[at];
			else
				r->sum.work_ns += path->sum.stage_ns[at];
			if (!r->quantiles && stage__times(p, id, &times)) {
				memcpy(r->sum.hist, times.hist,
				       sizeof(times.hist));
				r->quantiles = true;
			}
		}
	}
	return 0;
}

static int by_end(const struct profile *p, struct group *g)
{
	const struct profile_path *path;
	struct group_row *r;
	char name[64];
	size_t i;

	for (i = 0; i < p->npaths; i++) {
		path = &p->paths[i];
		snprintf(name, sizeof(name), "%s %s",
			 dir_name(path->key.dir) ?: "",
			 end_name(path->key.end) ?: "?");
		r = row_of(g, name, NULL);
		if (!r)
			return -ENOMEM;
		path__add(&r->sum, &path->sum);
		r->quantiles = true;
	}
	return 0;
}

static void add_group(struct group_row *r, const struct group_value *v)
{
	r->sum.packets += v->packets;
	r->sum.segments += v->segments;
	r->sum.bytes += v->bytes;
	r->sum.work_ns += v->work_ns;
	r->sum.wait_ns += v->wait_ns;
}

static void place_name(const struct profile_group *g, enum group_by by,
		       char *out, size_t size)
{
	const char *none = "not known";

	switch (by) {
	case BY_PORT:
		if (g->key.port)
			snprintf(out, size, "port %u", g->key.port);
		else
			snprintf(out, size, "%s", none);
		break;
	case BY_DEVICE:
		if (*g->device)
			snprintf(out, size, "%s", g->device);
		else if (g->key.ifindex)
			snprintf(out, size, "interface %u of namespace %u",
				 g->key.ifindex, g->key.netns);
		else
			snprintf(out, size, "%s", none);
		break;
	case BY_NETNS:
		if (*g->netns)
			snprintf(out, size, "%s", g->netns);
		else
			snprintf(out, size, "namespace %u", g->key.netns);
		break;
	default:
		if (*g->cgroup)
			snprintf(out, size, "%s", g->cgroup);
		else if (g->key.cgroup)
			snprintf(out, size, "cgroup %llu", g->key.cgroup);
		else
			snprintf(out, size, "%s", none);
	}
}

static int by_place(const struct profile *p, struct group *g, enum group_by by)
{
	char name[160], clean[160];
	struct group_row *r;
	size_t i;

	for (i = 0; i < p->ngroups; i++) {
		if (!p->groups[i].sum.packets)
			continue;
		place_name(&p->groups[i], by, name, sizeof(name));
		r = row_of(g, printable(name, clean, sizeof(clean)), NULL);
		if (!r)
			return -ENOMEM;
		add_group(r, &p->groups[i].sum);
	}
	return 0;
}

static int by_port(const struct profile *p, struct group *g)
{
	return by_place(p, g, BY_PORT);
}

static int by_device(const struct profile *p, struct group *g)
{
	return by_place(p, g, BY_DEVICE);
}

static int by_netns(const struct profile *p, struct group *g)
{
	return by_place(p, g, BY_NETNS);
}

static int by_cgroup(const struct profile *p, struct group *g)
{
	return by_place(p, g, BY_CGROUP);
}

static int by_cpu(const struct profile *p, struct group *g)
{
	struct group_row *r;
	char name[32];
	size_t i;

	for (i = 0; i < p->ncpus; i++) {
		if (!p->cpus[i].packets)
			continue;
		snprintf(name, sizeof(name), "CPU %zu", i);
		r = row_of(g, name, NULL);
		if (!r)
			return -ENOMEM;
		add_group(r, &p->cpus[i]);
	}
	return 0;
}

static int (*const makers[GROUPINGS])(const struct profile *p,
				      struct group *g) = {
	[BY_PATH] = by_path, [BY_STAGE] = by_stage, [BY_END] = by_end,
	[BY_PORT] = by_port, [BY_DEVICE] = by_device, [BY_NETNS] = by_netns,
	[BY_CGROUP] = by_cgroup, [BY_CPU] = by_cpu,
};

bool group__possible(const struct profile *p, enum group_by by)
{
	size_t i;

	switch (by) {
	case BY_PORT:
	case BY_DEVICE:
	case BY_NETNS:
		return p->ngroups;
	case BY_CGROUP:
		for (i = 0; i < p->ngroups; i++)
			if (p->groups[i].key.cgroup)
				return true;
		return false;
	case BY_CPU:
		return p->ncpus;
	default:
		return true;
	}
}

static double value(const struct path_value *v, enum sort_column column)
{
	double n = v->packets ? v->packets : 1;

	switch (column) {
	case SORT_PACKETS:
		return v->packets;
	case SORT_BYTES:
		return v->bytes;
	case SORT_MEAN:
		return v->work_ns / n;
	case SORT_WAIT:
		return v->wait_ns / n;
	default:
		return v->work_ns;
	}
}

const char *sort_name(enum sort_column column)
{
	static const char *const names[] = {
		"cost", "packets", "bytes", "ns/pkt", "wait",
	};

	return names[column];
}

struct order_arg {
	const struct profile *p;
	enum sort_column column;
};

static int compare_paths(const void *a, const void *b, void *arg)
{
	const struct order_arg *o = arg;
	const struct profile_path *x = &o->p->paths[*(const size_t *)a];
	const struct profile_path *y = &o->p->paths[*(const size_t *)b];
	double dx = value(&x->sum, o->column), dy = value(&y->sum, o->column);

	if (dx != dy)
		return dx < dy ? 1 : -1;
	/* A fixed order among equals keeps frames from flickering. */
	return memcmp(&x->key, &y->key, sizeof(x->key));
}

size_t *path__order(const struct profile *p, enum sort_column column)
{
	struct order_arg arg = { p, column };
	size_t *order = calloc(p->npaths + 1, sizeof(*order)), i;

	if (!order)
		return NULL;
	for (i = 0; i < p->npaths; i++)
		order[i] = i;
	qsort_r(order, p->npaths, sizeof(*order), compare_paths, &arg);
	return order;
}

static int compare(const void *a, const void *b, void *arg)
{
	const struct group_row *x = a, *y = b;
	enum sort_column column = *(enum sort_column *)arg;
	double dx = value(&x->sum, column), dy = value(&y->sum, column);

	if (dx != dy)
		return dx < dy ? 1 : -1;
	/* A fixed order among equals keeps frames from flickering. */
	return strcmp(x->name, y->name);
}

int group__make(const struct profile *p, enum group_by by,
		enum sort_column sort, const char *filter, struct group *out)
{
	size_t i, kept = 0;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = makers[by] ? makers[by](p, out) : -EINVAL;
	if (rc) {
		group__free(out);
		return rc;
	}
	for (i = 0; i < out->n; i++)
		out->work_ns += out->rows[i].sum.work_ns;
	for (i = 0; i < out->n; i++)
		if (!filter || strcasestr(out->rows[i].name, filter))
			out->rows[kept++] = out->rows[i];
	out->n = kept;
	if (kept)
		qsort_r(out->rows, kept, sizeof(*out->rows), compare, &sort);
	return 0;
}

void group__free(struct group *g)
{
	free(g->rows);
	memset(g, 0, sizeof(*g));
}
