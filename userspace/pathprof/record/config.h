/* SPDX-License-Identifier: GPL-2.0-only */
/* A session's choice of packets as constants of the BPF programs. */
#ifndef PATHPROF_CONFIG_H
#define PATHPROF_CONFIG_H

#include "record/session.h"

/*
 * Fill the constants of the programs: the filter, and the gaps between
 * samples (1 in `sample` packets), of which there are GAPS.
 */
void config__fill(struct pathprof_config *c, uint32_t *gaps,
		  unsigned int sample, const struct session_config *config);

#endif
