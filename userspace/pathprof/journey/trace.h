/* SPDX-License-Identifier: GPL-2.0-only */
/* Journeys in the formats of other tools.  Both print to stdout. */
#ifndef PATHPROF_JOURNEY_TRACE_H
#define PATHPROF_JOURNEY_TRACE_H

#include "journey/journey.h"

enum trace_tracks { TRACKS_STAGE, TRACKS_CPU };

/*
 * Chrome's trace event format, which Perfetto reads: a slice for each stage of
 * each packet, with an arrow from each slice of a packet to its next.  0 or a
 * negative errno.
 */
int journeys__trace(const struct journeys *all, enum trace_tracks tracks);
/* Packets whose first bytes were captured, as pcapng; how many, or -errno. */
long journeys__pcapng(const struct journeys *all);

#endif
