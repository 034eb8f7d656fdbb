/* SPDX-License-Identifier: GPL-2.0-only */
/* Runs something at random times within a budget of CPU time. */
#ifndef PATHPROF_DUTY_CYCLE_H
#define PATHPROF_DUTY_CYCLE_H

#include <stdint.h>

struct duty_cycle;

/*
 * Call run(arg) at once and then at random times, so rarely that the CPU time
 * it returns (ns) stays within percent of that of all CPUs.  0, or a negative
 * errno if there can be no thread.
 */
int duty_cycle__start(struct duty_cycle **out, double percent,
		      uint64_t (*run)(void *), void *arg);
/* Another budget, also for the pause that goes on. */
void duty_cycle__set(struct duty_cycle *d, double percent);
/* Wait for the last to end; NULL is taken. */
void duty_cycle__stop(struct duty_cycle *d);

#endif
