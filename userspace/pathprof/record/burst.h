/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long a sampling burst stays open.  Attaching and detaching cost the same
 * however many packets a burst meets, so a burst stays open until its packets
 * have cost a few times as much: more packets for the same budget.  Pure.
 */
#ifndef PATHPROF_BURST_H
#define PATHPROF_BURST_H

#include <stdint.h>

#define BURST_SHORTEST_NS	5000000	/* a packet takes microseconds */
#define BURST_LONGEST_NS	300000000
#define BURST_PACKETS		3	/* times the cost of attaching */

/*
 * The length follows from the earlier bursts, not from the traffic that a burst
 * meets: else a burst in a pause would last longer than one in a rush, and the
 * packets of pauses would weigh more.
 */
struct burst_plan {
	double packet_ns;	/* cost of following one */
	double open_ns, packets;	/* of earlier bursts, the last ones more */
};

/*
 * How much longer to stay open, after elapsed ns with that many packets; 0:
 * close.  fixed_ns: cost of attaching and detaching.
 */
uint64_t burst__next(const struct burst_plan *plan, double fixed_ns,
		     uint64_t elapsed, double packets);
/* A burst has closed. */
void burst__learn(struct burst_plan *plan, uint64_t open_ns, double packets);

#endif
