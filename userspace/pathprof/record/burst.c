// SPDX-License-Identifier: GPL-2.0-only
/*
 * The length of sampling bursts.  The first one finds it by doubling; later
 * ones use the rate of packets so far.  A burst that meets far more packets
 * than expected is cut short: the budget counts for more than the plan.
 */
#include "record/burst.h"

#define MEMORY_NS	2e9	/* of open time, before old bursts fade */
#define OVERRUN		4	/* times the plan, in packets' cost */

static double within(double ns)
{
	if (ns < BURST_SHORTEST_NS)
		return BURST_SHORTEST_NS;
	return ns > BURST_LONGEST_NS ? BURST_LONGEST_NS : ns;
}

/* The time in which packets at this rate cost their share. */
static double length(const struct burst_plan *plan, double fixed_ns,
		     double open_ns, double packets)
{
	if (packets < 1 || plan->packet_ns <= 0)
		return BURST_LONGEST_NS;
	return within(BURST_PACKETS * fixed_ns / plan->packet_ns * open_ns / packets);
}

uint64_t burst__next(const struct burst_plan *plan, double fixed_ns,
		     uint64_t elapsed, double packets)
{
	double want, cost = packets * plan->packet_ns;

	if (!elapsed)
		return BURST_SHORTEST_NS;
	if (plan->open_ns > 0) {
		want = length(plan, fixed_ns, plan->open_ns, plan->packets);
		if (cost > OVERRUN * BURST_PACKETS * fixed_ns)
			return 0;
	} else {
		want = length(plan, fixed_ns, elapsed, packets);
	}
	if (elapsed + 1e6 >= want)
		return 0;
	/* In steps that double, so that an overrun is seen early. */
	return want < 2.0 * elapsed ? want - elapsed : elapsed;
}

void burst__learn(struct burst_plan *plan, uint64_t open_ns, double packets)
{
	plan->open_ns += open_ns;
	plan->packets += packets;
	if (plan->open_ns > MEMORY_NS) {
		plan->open_ns /= 2;
		plan->packets /= 2;
	}
}
