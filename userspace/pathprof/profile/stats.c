// SPDX-License-Identifier: GPL-2.0-only
/*
 * Statistics from the sums of a path: quantiles and variance from
 * the log2 histogram, so within a bucket they are estimates; the mean is
 * exact.  The histogram is of times as measured: what pathprof's own work has
 * of the mean packet comes off what is found in it.
 */
#include <math.h>
#include <string.h>
#include "profile/stats.h"

#define Z95 1.96

static double bucket_low(unsigned int b)
{
	return b ? ldexp(1, b) : 0;
}

static double probe_mean(const struct path_value *v)
{
	return v->packets ? (double)v->probe_ns / v->packets : 0;
}

double path__quantile(const struct path_value *v, double q)
{
	double left = q * v->packets, low;
	unsigned int b;

	for (b = 0; b < HIST_BUCKETS; b++) {
		if (!v->hist[b])
			continue;
		low = bucket_low(b);
		/* As if spread evenly within the bucket. */
		if (left <= v->hist[b])
			return fmax(0, low + (ldexp(1, b + 1) - low) * left /
				    v->hist[b] - probe_mean(v));
		left -= v->hist[b];
	}
	return 0;
}

double path__mean(const struct path_value *v)
{
	return v->packets ? (double)v->work_ns / v->packets : 0;
}

double path__mean_variance(const struct path_value *v)
{
	double mean = path__mean(v) + probe_mean(v), sum = 0, d, width;
	unsigned int b;

	if (v->packets < 2)
		return 0;
	for (b = 0; b < HIST_BUCKETS; b++) {
		width = ldexp(1, b + 1) - bucket_low(b);
		d = bucket_low(b) + width / 2 - mean;
		/* The mean is more exact than the bucket it lies in. */
		if (mean >= bucket_low(b) && mean < bucket_low(b) + width)
			d = 0;
		sum += v->hist[b] * (d * d + width * width / 12);
	}
	return sum / v->packets / (v->packets - 1);
}

void path__add(struct path_value *to, const struct path_value *from)
{
	__u64 *a = (__u64 *)to;
	const __u64 *b = (const __u64 *)from;
	size_t i;

	for (i = 0; i < sizeof(*to) / sizeof(*a); i++)
		a[i] += b[i];
}

bool stage__times(const struct profile *p, unsigned int id,
		  struct path_value *out)
{
	const struct profile_path *path;
	unsigned int at;
	size_t i;

	memset(out, 0, sizeof(*out));
	for (i = 0; i < HIST_BUCKETS; i++) {
		out->hist[i] = p->stage_hist[id][i];
		out->packets += out->hist[i];
	}
	for (i = 0; i < p->npaths; i++) {
		path = &p->paths[i];
		for (at = 0; at < path->key.n && at < PATH_STAGES; at++) {
			/* Its last stage has no end, so no time was kept. */
			if (path->key.stages[at] != id ||
			    path->key.end == END_FOLLOWED)
				continue;
			out->work_ns += path->sum.stage_ns[at];
			if (p->subtracted)
				out->probe_ns += path->probe_ns[at];
		}
	}
	return out->packets;
}

double share__interval(double k, double n)
{
	double z = Z95 * Z95, p;

	if (n <= 0)
		return 0;
	p = k / n;
	return Z95 / (1 + z / n) * sqrt(p * (1 - p) / n + z / (4 * n * n));
}
