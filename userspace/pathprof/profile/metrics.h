/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A profile as a list of named metrics, to be compared with another's: what a
 * kind of packet costs, how many there are, what a stage costs.  Pure.
 */
#ifndef PATHPROF_METRICS_H
#define PATHPROF_METRICS_H

#include "profile/profile.h"

/* Prefix of the metrics of the run without pathprof, if there is one. */
#define METRIC_LOAD	"load."

enum metric_kind { METRIC_COST, METRIC_SHARE };

struct metric {
	char name[48];		/* rx.fast.cost, tx.at.driver, drop.share */
	enum metric_kind kind;
	/* ns a packet, ns a byte; of a share, 0 to 1 */
	double value;
	double packets;		/* that it rests on */
	int bad;		/* 1: more is worse, -1: less is, 0: neither */
};

/* In a fixed order; the caller frees it.  NULL without memory. */
struct metric *metrics(const struct profile *p, size_t *n);

#endif
