/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Groups of hooks, for --stages: which hook belongs to which.
 */
#ifndef PATHPROF_STAGE_GROUPS_H
#define PATHPROF_STAGE_GROUPS_H

#include <stdbool.h>
#include <stddef.h>

/* "a,b" or "all" to a set of groups; 0, with the reason in err, if wrong. */
unsigned int stage_groups__read(const char *text, char *err, size_t len);
/* The set of no group: what keeps a packet's identity. */
unsigned int stage_groups__none(void);
/* Is ICMP followed with this set of groups? */
bool stage_groups__icmp(unsigned int groups);
/* Is a hook of --stages attached for this set of groups; with --udp? */
bool stage_groups__want(unsigned int groups, bool udp, const char *hook);

#endif
