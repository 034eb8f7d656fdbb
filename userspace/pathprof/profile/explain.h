/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Why packets took one way and not the other: the branches of the stack, the
 * share and cost of each way, the facts that separate them.  Pure.
 */
#ifndef PATHPROF_EXPLAIN_H
#define PATHPROF_EXPLAIN_H

#include "profile/profile.h"

#define WAYS	2		/* the cheap one, the expensive one */

struct branch_fact {
	uint32_t bit;
	uint64_t with[WAYS];	/* packets of each way that have it */
	double score;
};

struct branch {
	const char *name, *title;
	const char *ways[WAYS];
	struct path_value sum[WAYS];
	struct branch_fact facts[32];
	size_t nfacts;
};

/*
 * Facts of a packet, the general ones only if there is no specific one:
 * prediction is off for a reason, and a packet out of order is not merely
 * unexpected.
 */
uint32_t explain__facts(const struct path_key *k);
/* All branches that packets met; the caller frees them.  NULL without memory. */
struct branch *explain(const struct profile *p, size_t *n);

#endif
