// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads the ring of raw events.  The kernel does not wake the reader, as that
 * would be part of the packet's time: a thread polls every few milliseconds.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "base/output-file.h"
#include "base/thread.h"
#include "journey/journey.h"
#include "record/events.h"

#define PAUSE_NS	2000000

struct events {
	struct ring_buffer *ring;
	pthread_t thread;
	bool reading, ending;
	FILE *spool;
	uint64_t bytes;
	int failed;		/* errno of a write */
	const char *path;
};

static void put_aside(struct events *e, const struct event *event, size_t size)
{
	if (e->failed)
		return;
	errno = 0;
	if (fwrite(event, size, 1, e->spool) != 1)
		e->failed = errno ? errno : EIO;
	else
		e->bytes += size;
}

/* Packets without a number are those of the calibration. */
static int take(void *arg, void *data, size_t room)
{
	const struct event *event = data;
	struct events *e = arg;
	size_t size = event__size(event, room);

	if (e->reading && size && event->number)
		put_aside(e, event, size);
	return 0;
}

static void *keep_reading(void *arg)
{
	struct timespec pause = { 0, PAUSE_NS };
	struct events *e = arg;

	while (!__atomic_load_n(&e->ending, __ATOMIC_ACQUIRE)) {
		ring_buffer__consume(e->ring);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* A file without a name, where the other one will be. */
static FILE *open_spool(const char *path)
{
	char name[4096];
	FILE *f;
	int fd;

	if (output_file__is_stdout(path))
		return tmpfile();
	if (snprintf(name, sizeof(name), "%s.XXXXXX", path) >=
	    (int)sizeof(name)) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	fd = mkstemp(name);
	if (fd < 0)
		return NULL;
	unlink(name);
	f = fdopen(fd, "w+");
	if (!f)
		close(fd);
	return f;
}

int events__start(struct events **out, int ring, const char *path, char *err,
		  size_t len)
{
	struct events *e = calloc(1, sizeof(*e));
	int rc;

	if (e) {
		e->path = path;
		e->ring = ring_buffer__new(ring, take, e, NULL);
	}
	if (e && e->ring)
		e->spool = open_spool(path);
	if (e && e->spool) {
		ring_buffer__consume(e->ring);
		e->reading = true;
		errno = -thread__start(&e->thread, keep_reading, e);
		if (!errno) {
			*out = e;
			return 0;
		}
		e->reading = false;
	}
	rc = errno ? -errno : -ENOMEM;
	snprintf(err, len, "cannot keep events for %s: %s", path,
		 strerror(-rc));
	events__free(e);
	return rc;
}

static void add_tracked(struct events *e, const struct tracked_pkt *t)
{
	struct event event = {
		.ns = t->last_ns, .from = t->last_ns, .number = t->number,
		.index = t->events, .flags = t->path.flags,
		.facts = t->path.facts, .bytes = t->bytes,
		.segments = t->segments,
		.what = t->undecided ? EV_DISOWN : EV_END, .end = END_FOLLOWED,
		.dir = t->path.dir, .family = t->path.family,
	};

	put_aside(e, &event, sizeof(event));
}

void events__stop(struct events *e, const struct sums *sums)
{
	size_t i;

	if (!e || !e->reading)
		return;
	__atomic_store_n(&e->ending, true, __ATOMIC_RELEASE);
	pthread_join(e->thread, NULL);
	ring_buffer__consume(e->ring);
	e->reading = false;
	for (i = 0; i < TRACKED_MAX; i++)
		if (sums->tracked_keys[i] && sums->tracked_pkts[i].number)
			add_tracked(e, &sums->tracked_pkts[i]);
	if (!e->failed && fflush(e->spool))
		e->failed = errno;
}

int events__write(struct events *e, const struct profile *p, uint64_t start_ns,
		  uint64_t lost, char *err, size_t len)
{
	void *data = NULL;
	int rc;

	if (e->failed) {
		snprintf(err, len, "cannot keep events for %s: %s", e->path,
			 strerror(e->failed));
		return -e->failed;
	}
	if (e->bytes)
		data = mmap(NULL, e->bytes, PROT_READ, MAP_PRIVATE,
			    fileno(e->spool), 0);
	if (data == MAP_FAILED) {
		rc = -errno;
		snprintf(err, len, "cannot read the events for %s: %s",
			 e->path, strerror(-rc));
		return rc;
	}
	rc = journeys__write(data, e->bytes, p, start_ns, lost, e->path, err,
			     len);
	if (data)
		munmap(data, e->bytes);
	return rc;
}

void events__free(struct events *e)
{
	if (!e)
		return;
	if (e->reading) {
		__atomic_store_n(&e->ending, true, __ATOMIC_RELEASE);
		pthread_join(e->thread, NULL);
	}
	ring_buffer__free(e->ring);
	if (e->spool)
		fclose(e->spool);
	free(e);
}
