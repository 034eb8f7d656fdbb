/* SPDX-License-Identifier: GPL-2.0-only */
/* How much of the time of stages is pathprof's own. */
#ifndef PATHPROF_PROBE_H
#define PATHPROF_PROBE_H

#include "profile/profile.h"

/*
 * Fill probe_ns of all paths, from what was measured and is attached; events:
 * they were kept, and a packet's addresses written where it is taken up.
 */
void probe__fill(struct profile *p, bool events);

#endif
