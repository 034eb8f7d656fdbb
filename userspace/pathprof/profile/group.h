/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rows of a live table: paths, or what else a profile can be grouped by.
 * Pure.
 */
#ifndef PATHPROF_GROUP_H
#define PATHPROF_GROUP_H

#include "profile/label.h"

enum sort_column { SORT_COST, SORT_PACKETS, SORT_BYTES, SORT_MEAN, SORT_WAIT,
		   SORT_COLUMNS };

enum group_by { BY_PATH, BY_STAGE, BY_END, BY_PORT, BY_DEVICE, BY_NETNS,
		BY_CGROUP, BY_CPU, GROUPINGS };

struct group_row {
	char name[LABEL];
	struct path_value sum;
	const struct profile_path *path;	/* BY_PATH: one of its paths */
	bool quantiles;		/* the histogram is known */
};

struct group {
	struct group_row *rows;
	size_t n;
	uint64_t work_ns;	/* of all rows, also of those filtered out */
};

const char *sort_name(enum sort_column column);
/* Indices of paths in order; the caller frees them. */
size_t *path__order(const struct profile *p, enum sort_column column);

const char *group_name(enum group_by by);
/* Has the profile what this needs? */
bool group__possible(const struct profile *p, enum group_by by);
/*
 * Rows in the order of a column, highest first; only those whose name contains
 * the text `filter`, unless NULL.  0 or a negative errno.
 */
int group__make(const struct profile *p, enum group_by by,
		enum sort_column sort, const char *filter, struct group *out);
void group__free(struct group *g);

#endif
