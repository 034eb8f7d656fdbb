/* SPDX-License-Identifier: GPL-2.0-only */
/* How packets of an events file are shown: text.c, json.c. */
#ifndef PATHPROF_JOURNEY_VIEW_H
#define PATHPROF_JOURNEY_VIEW_H

#include "journey/journey.h"

/* A packet to show, and its time in the host. */
struct journey_item {
	const struct journey *j;
	uint64_t total_ns;
};

/* The path of a packet in words, as "rx fast data". */
void journey__words(const struct journeys *all, const struct journey *j,
		    const struct journey_sum *sum, char *out, size_t size);
void journey__print(const struct journeys *all, const struct journey *j);
void journey__print_list(const struct journeys *all,
			 const struct journey_item *items, size_t n);
/* A list leaves the events out; EXIT_GOOD or EXIT_FAILED. */
int journey__print_json(const struct journeys *all,
			const struct journey_item *items, size_t n, bool list);

#endif
