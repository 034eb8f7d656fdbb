// SPDX-License-Identifier: GPL-2.0
/*
 * When sampling windows open.  The pause after each follows from what it cost
 * and from the budget; half to one and a half times of it, at random, so that
 * no rhythm of the traffic is met or missed each time.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include "duty-cycle.h"

#define LONGEST_NS	60e9

struct windows {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool ending;
	double share;		/* of one CPU's time */
	uint64_t (*run)(void *arg);
	void *arg;
};

static struct timespec later(double ns)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	ns += t.tv_nsec;
	t.tv_sec += (time_t)(ns / 1e9);
	t.tv_nsec = fmod(ns, 1e9);
	return t;
}

static void *keep_windows(void *arg)
{
	struct windows *w = arg;
	struct timespec until;
	uint32_t random;
	double cost;

	pthread_mutex_lock(&w->lock);
	while (!w->ending) {
		/* stop() sets ending at once and waits for the thread. */
		pthread_mutex_unlock(&w->lock);
		cost = w->run(w->arg);
		pthread_mutex_lock(&w->lock);
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			random = 1U << 31;
		cost *= (0.5 + random / 4294967296.0) / w->share;
		until = later(fmin(cost, LONGEST_NS));
		while (!w->ending &&
		       !pthread_cond_timedwait(&w->wake, &w->lock, &until))
			;
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

struct windows *windows__start(double percent, uint64_t (*run)(void *),
			       void *arg)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	struct windows *w = calloc(1, sizeof(*w));
	pthread_condattr_t attr;

	if (!w)
		return NULL;
	w->share = percent / 100 * (cpus > 0 ? cpus : 1);
	w->run = run;
	w->arg = arg;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &attr);
	errno = pthread_create(&w->thread, NULL, keep_windows, w);
	if (!errno)
		return w;
	free(w);
	return NULL;
}

void windows__stop(struct windows *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->ending = true;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	free(w);
}
