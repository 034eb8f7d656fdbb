/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Journeys: the stages that single packets went through, one event for each
 * clock that was read for them.  write.c and read.c alone know
 * them as a file (Documentation/reference/events-format.rst).
 */
#ifndef PATHPROF_JOURNEY_H
#define PATHPROF_JOURNEY_H

#include "profile/profile.h"

#define EVENTS_FORMAT	"pathprof-events"
#define EVENTS_VERSION	1

/* Addresses of a packet, and the interface where it has them. */
struct journey_flow {
	char source[46], destination[46];
	uint16_t source_port, destination_port;
	uint32_t ifindex, netns;
};

/* A device that a packet comes to. */
struct journey_place {
	char device[16];
	struct journey_flow flow;
};

/* One clock of a packet: it enters a stage here. */
struct journey_event {
	struct journey_place *place;	/* NULL: where it was before */
	uint64_t ns;		/* since the packet's first */
	uint64_t took_ns;	/* the stage before, without what is our own */
	uint32_t flags, facts;	/* learned since the event before */
	uint16_t lost;		/* events before this one */
	uint16_t cpu;
	uint8_t stage;
	bool again;		/* a stage it was in before */
};

struct journey {
	uint32_t number;
	uint8_t dir, family, end;
	bool ended;		/* end, reason, and the sums are known */
	bool has_flow;		/* flow and seq are known */
	struct journey_flow flow;
	uint32_t reason;
	uint32_t seq;
	uint32_t bytes, segments;
	uint32_t flags, facts;
	uint32_t lost;
	uint64_t start_ns;	/* since the recording began */
	bool has_state;		/* of the connection, with --state */
	uint32_t state[STATE_MAX];
	uint32_t length;	/* from IP on, where bytes were captured */
	uint16_t ncaptured;
	uint8_t *captured;
	struct journey_event *events;
	size_t nevents;
};

struct journeys {
	struct profile profile;	/* of the same recording */
	uint64_t nevents, lost;
	struct journey *list;	/* in the order of their numbers */
	size_t n;
};

/* Where a packet's time went, and the path it took. */
struct journey_sum {
	struct path_key path;
	uint64_t stage_ns[PATH_STAGES];
	uint64_t total_ns, work_ns, wait_ns;
	uint64_t own_ns;	/* between clocks, pathprof's own */
};

void journey__sum(const struct journeys *all, const struct journey *j,
		  struct journey_sum *sum);
/* Of the profile; NULL if it has no such path. */
const struct profile_path *journey__path(const struct journeys *all,
					 const struct journey_sum *sum);

/* How another packet belongs to one. */
enum journey_relation { REL_NONE, REL_MERGED_INTO, REL_MERGED_HERE,
			REL_SENT_AS, REL_RECEIVED_AS };
enum journey_relation journey__relation(const struct journey *j,
					const struct journey *other);

/* Length of a raw event in the room there is; 0 if it does not fit. */
size_t event__size(const struct event *event, size_t room);

/*
 * Files.  They return 0, or a negative errno and the reason in err.  write
 * takes raw events as the kernel sent them.
 */
int journeys__write(const void *raw, size_t bytes, const struct profile *p,
		    uint64_t start_ns, uint64_t lost, const char *path,
		    char *err, size_t len);
int journeys__read(struct journeys *all, const char *path, char *err,
		   size_t len);
void journeys__free(struct journeys *all);

#endif
