// SPDX-License-Identifier: GPL-2.0-only
/*
 * The duty cycle: when sampling bursts begin.  The pause after each follows
 * from its cost and from the budget.  It is drawn at random from half to one
 * and a half times that, so that no rhythm of the traffic is always met or
 * missed.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "base/thread.h"
#include "record/duty-cycle.h"

#define LONGEST_NS	60e9

struct duty_cycle {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool ending;
	double share;		/* of one CPU's time */
	uint64_t (*run)(void *arg);
	void *arg;
	double last_cost, random;	/* of the pause that goes on */
	struct timespec ended;		/* the burst before it */
};

/* The pause after the last burst, from its end. */
static struct timespec next_burst(const struct duty_cycle *d)
{
	double ns = d->last_cost * (0.5 + d->random) / d->share;
	struct timespec t = d->ended;

	ns = fmin(ns, LONGEST_NS) + t.tv_nsec;
	t.tv_sec += (time_t)(ns / 1e9);
	t.tv_nsec = fmod(ns, 1e9);
	return t;
}

static bool pause_over(const struct timespec *until)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > until->tv_sec ||
	       (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec);
}

static void *keep_cycling(void *arg)
{
	struct duty_cycle *d = arg;
	struct timespec until;
	uint32_t random;

	pthread_mutex_lock(&d->lock);
	while (!d->ending) {
		/* stop() sets ending at once and waits for the thread. */
		pthread_mutex_unlock(&d->lock);
		d->last_cost = d->run(d->arg);
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			random = 1U << 31;
		d->random = random / 4294967296.0;
		clock_gettime(CLOCK_MONOTONIC, &d->ended);
		pthread_mutex_lock(&d->lock);
		/* Woken by stop(), and by set() for a new share. */
		for (until = next_burst(d); !d->ending && !pause_over(&until);
		     until = next_burst(d))
			pthread_cond_timedwait(&d->wake, &d->lock, &until);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

static double share_of(double percent)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return percent / 100 * (cpus > 0 ? cpus : 1);
}

void duty_cycle__set(struct duty_cycle *d, double percent)
{
	pthread_mutex_lock(&d->lock);
	d->share = share_of(percent);
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
}

int duty_cycle__start(struct duty_cycle **out, double percent,
		      uint64_t (*run)(void *), void *arg)
{
	struct duty_cycle *d = calloc(1, sizeof(*d));
	pthread_condattr_t attr;
	int rc;

	if (!d)
		return -ENOMEM;
	d->share = share_of(percent);
	d->run = run;
	d->arg = arg;
	pthread_mutex_init(&d->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&d->wake, &attr);
	rc = thread__start(&d->thread, keep_cycling, d);
	if (rc)
		free(d);
	else
		*out = d;
	return rc;
}

void duty_cycle__stop(struct duty_cycle *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->lock);
	d->ending = true;
	pthread_cond_signal(&d->wake);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	free(d);
}
