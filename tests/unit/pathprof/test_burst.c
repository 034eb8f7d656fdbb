// SPDX-License-Identifier: GPL-2.0-only
/*
 * The length of sampling bursts (pathprof/record/burst.c): how many packets a budget
 * buys at a rate, what a rush costs, and what a pause does to the weights.
 */
#include <stdio.h>
#include "record/burst.c"

#define FIXED	800000.0	/* ns to attach and detach */
#define PACKET	2400.0		/* ns to follow a packet */

static int failed, cases;

static void expect(int ok, const char *what)
{
	printf("%sok %d %s\n", ok ? "" : "not ", ++cases, what);
	failed += !ok;
}

/* One burst at this rate, packets a second; its length, and its packets. */
static double burst(struct burst_plan *plan, double rate, double *packets)
{
	uint64_t elapsed = 0, more;
	double n = 0;

	while ((more = burst__next(plan, FIXED, elapsed, n))) {
		elapsed += more;
		n = (uint64_t)(rate * elapsed / 1e9);
	}
	burst__learn(plan, elapsed, n);
	*packets = n;
	return elapsed;
}

static int near(double a, double b)
{
	return a < 1.25 * b && a > 0.75 * b;
}

/* Packets that a second of CPU time buys. */
static double yield(double rate)
{
	struct burst_plan plan = { .packet_ns = PACKET };
	double all = 0, cost = 0, n;
	int i;

	for (i = 0; i < 50; i++) {
		burst(&plan, rate, &n);
		all += n;
		cost += FIXED + n * PACKET;
	}
	return all / cost * 1e9;
}

static double yield_of_5_ms(double rate)
{
	return rate * 0.005 / (FIXED + rate * 0.005 * PACKET) * 1e9;
}

int main(void)
{
	struct burst_plan plan = { .packet_ns = PACKET };
	double n, length, before;
	int i;

	printf("KTAP version 1\n1..7\n");
	expect(yield(3000) > 12 * yield_of_5_ms(3000),
	       "3,000 packets/s: twelve times the packets of bursts of 5 ms");
	expect(yield(1e6) > 0.95 * yield_of_5_ms(1e6),
	       "a million packets/s: no fewer than with 5 ms");

	length = burst(&plan, 3000, &n);
	expect(n * PACKET > 1.5 * FIXED && n * PACKET < 4 * FIXED,
	       "the first burst finds its length, which is bounded");
	for (i = 0; i < 20; i++)
		before = burst(&plan, 3000, &n);
	expect(near(before, length), "and the others keep it");
	/* A pause of the traffic within a plan that knows its rate. */
	length = burst(&plan, 0, &n);
	expect(near(length, before),
	       "a burst in a pause lasts no longer");
	plan = (struct burst_plan){ .packet_ns = PACKET };
	burst(&plan, 10, &n);
	burst(&plan, 1e6, &n);
	expect(n * PACKET < 40 * FIXED, "a rush after a pause is cut short");
	plan = (struct burst_plan){ .packet_ns = 0 };
	expect(burst(&plan, 1e5, &n) <= 2 * BURST_LONGEST_NS,
	       "without a known cost it ends");
	return failed != 0;
}
