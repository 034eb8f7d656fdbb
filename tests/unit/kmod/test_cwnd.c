// SPDX-License-Identifier: GPL-2.0-only
/*
 * Arithmetic of the congestion control (kmod/cwnd.h) in user space, against
 * the formulas of RFC 9438 in long double and against simulated ACK streams.
 * The cases without floating point are in cwnd_cases.h; tests/kunit runs them
 * inside a kernel.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint32_t u32;
typedef uint64_t u64;

#define U32_MAX UINT32_MAX
#define U64_MAX UINT64_MAX

#include "../../../kmod/cwnd.h"
#include "../../../kmod/window.h"
#include "cwnd_cases.h"

#define MSS CWND_MSS
#define ROUNDS 100000

#define COUNT(name, got, wanted) + 1
#define ROWS(X) CWND_COUNTED(X) CWND_SLOW_START(X) CWND_REDUCED(X) CWND_LIMITS(X)
#define PROPERTIES (sizeof(cwnd_properties) / sizeof(cwnd_properties[0]))

static int cases, failures;

static void report(const char *name, bool passed)
{
	printf("%sok %d %s\n", passed ? "" : "not ", ++cases, name);
	failures += !passed;
}

static void row(const char *name, u64 got, u64 wanted)
{
	if (got != wanted)
		printf("# got %llu, wanted %llu\n", (unsigned long long)got,
		       (unsigned long long)wanted);
	report(name, got == wanted);
}

/* The tests link no mathematics library. */
static long double size(long double x)
{
	return x < 0 ? -x : x;
}

static long double cube(long double x)
{
	return x * x * x;
}

/* Newton's method; x >= 0 */
static long double cube_root(long double x)
{
	long double root = x > 1 ? x : 1;
	int i;

	for (i = 0; i < 100; i++)
		root -= (cube(root) - x) / (3 * root * root);
	return root;
}

static bool near(const char *what, long double got, long double wanted,
		 long double within)
{
	if (size(got - wanted) <= within)
		return true;
	printf("# %s: got %.3Lf, wanted %.3Lf +- %.3Lf\n", what, got, wanted,
	       within);
	return false;
}

/* W_cubic(t) = 0.4 MSS (t - K)^3 + W_max, K the cube root of the remainder. */
static bool follows_formula(const struct mssfrac_curve *curve, u32 win, u32 mss,
			    u32 rtt)
{
	long double k, t, want, slope;
	u32 w_max = curve->w_max;

	k = cube_root((long double)(w_max - win) / mss / 0.4L);
	t = ((long double)curve->t_us + rtt) / 1e6L;
	want = w_max + 0.4L * mss * cube(t - k);
	if (want > MSSFRAC_CWND_MAX)
		want = MSSFRAC_CWND_MAX;
	if (want < 0)
		want = 0;
	/* The times are off by 1 ms each, the cube by 1/1000 MSS. */
	slope = size(t - k) + 0.002L;
	slope = 0.4L * mss * 3 * slope * slope;
	if (near("K in ms", curve->k_ms, 1000 * k, 1.01) &&
	    near("W_cubic", mssfrac_curve_at(curve, mss, rtt), want,
		 0.002L * slope + 0.0011L * mss + 1))
		return true;
	printf("# mss %u w_max %u win %u t_us %u rtt %u\n", mss, w_max, win,
	       curve->t_us, rtt);
	return false;
}

static bool curves(void)
{
	int i;

	for (i = 0; i < ROUNDS; i++) {
		u32 mss = 88 + cwnd_random(65448);
		u32 w_max = 2 * mss + cwnd_random(MSSFRAC_CWND_MAX >>
						  cwnd_random(14));
		u32 win = w_max - cwnd_random(w_max / 2);
		struct mssfrac_curve curve = { .w_max = w_max, .prior = w_max };

		mssfrac_curve_begin(&curve, win, mss);
		curve.t_us = cwnd_random(2000 * curve.k_ms + 1000000) % 1000000000;
		if (!follows_formula(&curve, win, mss, cwnd_random(1000000)))
			return false;
	}
	return true;
}

/* The points that KUnit checks are those of the formula. */
static bool points(void)
{
	const struct cwnd_point *p;

	for (p = cwnd_points; p < cwnd_points + CWND_POINTS; p++) {
		struct mssfrac_curve curve = cwnd_curve_of(p);

		if (!follows_formula(&curve, p->win, p->mss, p->rtt_us) ||
		    !near("K", curve.k_ms, p->k_ms, 0) ||
		    !near("point", mssfrac_curve_at(&curve, p->mss, p->rtt_us),
			  p->at, 0))
			return false;
	}
	return true;
}

static bool holds(const struct cwnd_property *property)
{
	struct cwnd_args args = {};
	int i;

	for (i = 0; i < ROUNDS; i++)
		if (!property->holds(&args)) {
			printf("# " CWND_ARGS "\n", CWND_ARGS_OF(&args));
			return false;
		}
	return true;
}

/* A sender of this congestion control that is always limited by its window. */
struct flow {
	struct mssfrac_curve curve;
	u32 win, credit, est_credit, mss;
};

static void ack(struct flow *f, u32 bytes, u32 rtt_us)
{
	u32 step = mssfrac_step(f->mss, MSSFRAC_CWND_FRAC);
	u32 need;

	if (!f->curve.w_est)
		mssfrac_curve_begin(&f->curve, f->win, f->mss);
	need = mssfrac_bytes_per_step(f->win,
				      mssfrac_reno_growth(f->mss),
				      step);
	f->curve.w_est += step * mssfrac_buy_steps(&f->est_credit, bytes, need);
	need = mssfrac_bytes_per_step(f->win,
				      mssfrac_growth(&f->curve, f->win, f->mss,
						     rtt_us), step);
	f->win += step * mssfrac_buy_steps(&f->credit, bytes, need);
}

/*
 * Seconds of a flow whose ACKs each acknowledge @bytes; returns the window.
 * Its curve begins at 7/10 of @w_max.
 */
static struct flow simulate(u32 w_max, u32 mss, u32 bytes, u32 rtt_us,
			    long double seconds)
{
	struct flow f = { .mss = mss, .win = w_max };
	long double now = 0, step;

	mssfrac_curve_end(&f.curve, f.win);
	f.win = mssfrac_reduced(f.win, mss);
	while (now < seconds) {
		ack(&f, bytes, rtt_us);
		/* One window per round trip, ACKs evenly spread. */
		step = (long double)bytes / f.win * rtt_us / 1e6L;
		now += step;
		f.curve.t_us = now * 1e6L;
	}
	return f;
}

/* A large window and a long path: the curve, to half a percent. */
static bool follows_cubic(void)
{
	static const u32 seconds[] = { 1, 3, 6, 9, 12 };
	u32 w_max = 2000 * MSS;
	long double k = cube_root(0.3L * 2000 / 0.4L), want;
	unsigned int i;

	for (i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
		struct flow f = simulate(w_max, MSS, 2 * MSS, 100000,
					 seconds[i]);

		want = w_max + 0.4L * MSS * cube(seconds[i] - k);
		if (!near("window", f.win, want, want / 200))
			return false;
	}
	return true;
}

/* A small window and a short path: alpha = 9/17 per round trip. */
static bool follows_reno(void)
{
	struct flow f = simulate(40 * MSS, MSS, 2 * MSS, 5000, 0.005L * 20);

	if (!near("9/17 MSS per round trip", f.win,
		  28 * MSS + 20 * 9 * MSS / 17.0L, MSS / 2))
		return false;
	f = simulate(40 * MSS, MSS, 2 * MSS, 5000, 0.005L * 60);
	/* Beyond the last reduction, too. */
	return near("9/17 MSS per round trip still", f.win,
		    28 * MSS + 60 * 9 * MSS / 17.0L, MSS);
}

/* Growth is by bytes: whatever the ACKs cover, to a step of MSS/64 each. */
static bool divided_acks(void)
{
	static const u32 sizes[] = { 1, 7, 100, 724, 1448, 2896, 14480, 65160 };
	struct flow whole, other;
	unsigned int i;

	whole = simulate(400 * MSS, MSS, 2 * MSS, 50000, 6);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		other = simulate(400 * MSS, MSS, sizes[i], 50000, 6);
		if (!near("window", other.win, whole.win, whole.win / 200))
			return false;
	}
	return true;
}

/* 6.25 segments over 40 ms. */
static bool pacing(void)
{
	u32 win = 6 * MSS + MSS / 4, srtt8 = 8 * 40000;
	long double rate = win / 0.04L;

	return near("half full", mssfrac_pacing_rate(win, 4 * MSS, srtt8, 120),
		    1.2L * rate, rate / 1000) &&
	       near("five, six with the next",
		    mssfrac_pacing_rate(win, 6 * MSS, srtt8, 120),
		    rate * 6.25L / 6, rate / 1000) &&
	       near("full", mssfrac_pacing_rate(win, 7 * MSS, srtt8, 120),
		    rate, rate / 1000) &&
	       near("overfull", mssfrac_pacing_rate(win, 9 * MSS, srtt8, 120),
		    rate, rate / 1000);
}

/*
 * What the rate is for: a path that takes what comes and acknowledges every
 * @every segments, each segment sent when the rate of the one before lets it
 * and snd_cwnd has room.  Bytes sent per (measured) round trip.
 */
static long double paced(u32 win, u32 every)
{
	u32 cwnd = mssfrac_cwnd_segments(win, MSS), first = 0, flying = 0;
	long double now = 0, next = 0, sent_at[64] = {}, trip = 0.04L, sent = 0;

	while (now < 20) {
		/* The ACK comes 40 ms after the last segment it covers. */
		long double arrival =
			sent_at[(first + every - 1) % 64] + 0.04L;

		if (flying >= every && arrival <= now) {
			trip += (arrival - sent_at[first % 64] - trip) / 8;
			first += every;
			flying -= every;
		} else if (flying == cwnd) {
			now = arrival;
		} else if (now < next) {
			now = next;
		} else {
			sent_at[(first + flying) % 64] = now;
			sent += MSS;
			next = now + MSS / (long double)mssfrac_pacing_rate(
						win, (flying + 2) * MSS,
						8e6L * trip, 120);
			flying++;
		}
	}
	return sent / now * trip;
}

static bool pacing_holds_the_fraction(u32 every)
{
	u32 segs, part, win;

	for (segs = 3; segs < MSSFRAC_PACED_SEGS; segs++)
		for (part = 0; part < 64; part += 9) {
			win = segs * MSS + part * (MSS / 64);
			if (!near("bytes per round trip", paced(win, every),
				  win, win / 48.0L)) {
				printf("# window of %u %u/64 segments\n", segs,
				       part);
				return false;
			}
		}
	return true;
}

int main(void)
{
	unsigned int i;

	printf("KTAP version 1\n1..%d\n", (int)(8 ROWS(COUNT) + PROPERTIES));
#define ROW(name, got, wanted) row(name, got, wanted);
	ROWS(ROW)
	for (i = 0; i < PROPERTIES; i++)
		report(cwnd_properties[i].name, holds(&cwnd_properties[i]));
	report("curve and K agree with RFC 9438 in long double", curves());
	report("so do the points that KUnit checks", points());
	report("a simulated flow follows the curve", follows_cubic());
	report("a simulated flow follows Reno's estimate", follows_reno());
	report("growth does not depend on what an ACK covers", divided_acks());
	report("pacing rate by what is in flight", pacing());
	report("pacing holds the fraction, every segment acknowledged",
	       pacing_holds_the_fraction(1));
	report("pacing holds the fraction, every second acknowledged",
	       pacing_holds_the_fraction(2));
	return !!failures;
}
