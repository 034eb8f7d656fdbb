/* SPDX-License-Identifier: GPL-2.0-only */
/* The few numbers that a live view begins with.  Pure. */
#ifndef PATHPROF_SUMMARY_H
#define PATHPROF_SUMMARY_H

#include "profile/profile.h"

struct summary {
	struct profile_totals totals;
	double seconds;		/* in which packets were chosen */
	double weight;		/* packets that one sampled packet stands for */
	double packets, bits;	/* per second */
	uint64_t fast, slow;	/* received data, by header prediction */
	struct {
		unsigned int fact;
		uint64_t packets;
	} reasons[32];		/* for the slow path, most frequent first */
	size_t nreasons;
};

/* Packets that the kernel dropped: the reason, the stage before, the function. */
struct drop {
	uint8_t dir, stage;
	uint32_t reason;
	const char *where;	/* of the profile; "": not known */
	uint64_t packets;
};

void summary__make(const struct profile *p, struct summary *s);
/* "function(), called by a, b", or "": where a packet was dropped. */
const char *drop__place(const char *where, char *out, size_t len);
/* Most frequent first; to be freed.  NULL without memory. */
struct drop *summary__drops(const struct profile *p, size_t *n);

#endif
