/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads beside the main one. */
#ifndef PATHPROF_THREAD_H
#define PATHPROF_THREAD_H

#include <pthread.h>

/*
 * Like pthread_create(), with default attributes and all signals blocked.
 * Returns -errno.
 */
int thread__start(pthread_t *thread, void *(*run)(void *), void *arg);

#endif /* PATHPROF_THREAD_H */
