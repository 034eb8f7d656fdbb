/* SPDX-License-Identifier: GPL-2.0-only */
/* The options of record and top that say which packets are followed. */
#ifndef PATHPROF_FILTER_H
#define PATHPROF_FILTER_H

#include "record/options.h"

/* Words into numbers; 0, or an exit status after a complaint. */
int filter__settle(struct record_options *o, const char *command);

#endif
