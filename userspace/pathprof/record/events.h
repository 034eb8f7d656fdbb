/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Raw events on their way from the kernel's ring to a file.  While the
 * recording lasts they are only put aside, in a nameless file beside the one
 * to be written; journey/write.c then puts them in order.
 */
#ifndef PATHPROF_EVENTS_H
#define PATHPROF_EVENTS_H

#include <stddef.h>
#include "record/collect.h"

struct events;

/*
 * Drop what is in the ring and read from now on; path is the file that will be
 * written.  0, or a negative errno and the reason in err.
 */
int events__start(struct events **out, int ring, const char *path, char *err,
		  size_t len);
/* The last ones, and the packets that have not arrived. */
void events__stop(struct events *e, const struct sums *sums);
/* Into the file it was started for; p is the recording's profile. */
int events__write(struct events *e, const struct profile *p, uint64_t start_ns,
		  uint64_t lost, char *err, size_t len);
/* NULL is taken. */
void events__free(struct events *e);

#endif
