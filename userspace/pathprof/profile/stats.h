/* SPDX-License-Identifier: GPL-2.0-only */
/* Statistics from the sums of a path.  Pure. */
#ifndef PATHPROF_STATS_H
#define PATHPROF_STATS_H

#include "profile/profile.h"

/* The work time below which a share q of the packets stayed, about. */
double path__quantile(const struct path_value *v, double q);
/* Mean work per packet, and the variance of that mean, about. */
double path__mean(const struct path_value *v);
double path__mean_variance(const struct path_value *v);
void path__add(struct path_value *to, const struct path_value *from);
/*
 * A stage's packets, time and quantiles over all paths, as if it were a path
 * of its own; false: its times were not kept.
 */
bool stage__times(const struct profile *p, unsigned int id,
		  struct path_value *out);
/* Of k in n: the half width of the 95 % interval (Wilson), in shares. */
double share__interval(double k, double n);

#endif
