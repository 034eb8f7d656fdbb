// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that take no signals.  The main thread waits for them with signalfd;
 * one that does not block them too would take them away from it, and end the
 * program or, if they are ignored, lose them.
 */
#include <signal.h>
#include "base/thread.h"

int thread__start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = -pthread_create(thread, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}
