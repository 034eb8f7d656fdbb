// SPDX-License-Identifier: GPL-2.0
/*
 * Arithmetic of the congestion control (kmod/cwnd.h) in user space, against
 * the formulas of RFC 9438 in long double and against simulated ACK streams.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint32_t u32;
typedef uint64_t u64;

#include "../../kmod/cwnd.h"
#include "../../kmod/window.h"

#define MSS 1448

static int cases, failures;

#define CASE(name, ok) do {						\
	bool passed = (ok);						\
	printf("%sok %d %s\n", passed ? "" : "not ", ++cases, name);	\
	failures += !passed;						\
} while (0)

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

static bool is(u64 got, u64 wanted)
{
	if (got != wanted)
		printf("# got %llu, wanted %llu\n", (unsigned long long)got,
		       (unsigned long long)wanted);
	return got == wanted;
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

/* xorshift64: the same arguments in every run. */
static u64 random64(void)
{
	static u64 x = 88172645463325252ULL;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

static u32 random_below(u32 limit)
{
	return random64() % limit;
}

static bool is_root(u64 a)
{
	unsigned __int128 root = mssfrac_cbrt(a);

	if (root * root * root <= a &&
	    (root + 1) * (root + 1) * (root + 1) > a)
		return true;
	printf("# cbrt(%llu) = %llu\n", (unsigned long long)a,
	       (unsigned long long)root);
	return false;
}

static bool roots(void)
{
	u64 i;

	for (i = 1; i <= 2642245; i += 1 + i / 1000)	/* largest root */
		if (!is_root(i * i * i) || !is_root(i * i * i - 1))
			return false;
	for (i = 0; i < 100000; i++)
		if (!is_root(random64() >> random_below(64)))
			return false;
	return is_root(0) && is_root(1) && is_root(UINT64_MAX);
}

/* W_cubic(t) = 0.4 MSS (t - K)^3 + W_max, K the cube root of the rest. */
static bool curves(void)
{
	int i;

	for (i = 0; i < 100000; i++) {
		u32 mss = 88 + random_below(65448);
		u32 w_max = 2 * mss + random_below(MSSFRAC_CWND_MAX >>
						   random_below(14));
		u32 win = w_max - random_below(w_max / 2);
		struct mssfrac_curve curve = { .w_max = w_max, .prior = w_max };
		u32 rtt = random_below(1000000);
		u32 got;
		long double k, t, want, slope;

		mssfrac_curve_begin(&curve, win, mss);
		k = cube_root((long double)(w_max - win) / mss / 0.4L);
		if (!near("K in ms", curve.k_ms, 1000 * k, 1.01))
			return false;

		curve.t_us = random_below(2000 * curve.k_ms + 1000000) % 1000000000;
		t = ((long double)curve.t_us + rtt) / 1e6L;
		want = w_max + 0.4L * mss * cube(t - k);
		if (want > MSSFRAC_CWND_MAX)
			want = MSSFRAC_CWND_MAX;
		if (want < 0)
			want = 0;
		/* The times are off by 1 ms each, the cube by 1/1000 MSS. */
		slope = size(t - k) + 0.002L;
		slope = 0.4L * mss * 3 * slope * slope;
		got = mssfrac_curve_at(&curve, mss, rtt);
		if (!near("W_cubic", got, want, 0.002L * slope +
			  0.0011L * mss + 1)) {
			printf("# mss %u w_max %u win %u t_us %u rtt %u\n", mss,
			       w_max, win, curve.t_us, rtt);
			return false;
		}
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

/* No stream of ACKs buys more steps than its bytes are worth. */
static bool never_dearer(void)
{
	int i, j;

	for (i = 0; i < 20000; i++) {
		u32 mss = 88 + random_below(65448);
		u32 win = 2 * mss + random_below(1 << 24);
		u32 delta = 1 + random_below(win / 2);
		u32 step = mssfrac_step(mss, MSSFRAC_CWND_FRAC);
		u32 need = mssfrac_bytes_per_step(win, delta, step);
		u32 credit = 0;
		u64 acked = 0, steps = 0;

		for (j = 0; j < 50; j++) {
			u32 bytes = random_below(3 * mss);

			acked += bytes;
			steps += mssfrac_buy_steps(&credit, bytes, need);
		}
		/* steps * step / delta <= acked / win, and all but one came */
		if ((long double)steps * step * win > (long double)acked * delta ||
		    steps != acked / need || steps * need + credit != acked) {
			printf("# mss %u win %u delta %u\n", mss, win, delta);
			return false;
		}
	}
	return true;
}

/* Up to MSSFRAC_PACED_SEGS segments hold the window; then the window them. */
static bool rounding(void)
{
	int i;

	for (i = 0; i < 100000; i++) {
		u32 seg = 88 + random_below(65448);
		u32 win = random_below(i % 2 ? MSSFRAC_CWND_MAX :
					       2 * MSSFRAC_PACED_SEGS * seg);
		u64 segs = mssfrac_cwnd_segments(win, seg);
		bool up = win <= MSSFRAC_PACED_SEGS * seg;
		u64 low = up ? segs - 1 : segs, high = up ? segs : segs + 1;

		/* (low, high] going up, [low, high) going down */
		if (win && (low * seg + up > win || high * seg + up <= win)) {
			printf("# win %u seg %u: %u\n", win, seg, (u32)segs);
			return false;
		}
	}
	return true;
}

static bool growth_bounds(void)
{
	int i;

	for (i = 0; i < 100000; i++) {
		struct mssfrac_curve curve = {
			.w_max = random_below(MSSFRAC_CWND_MAX),
			.w_est = 1 + random_below(MSSFRAC_CWND_MAX),
			.prior = random_below(2) * (1 + random_below(1 << 28)),
			.k_ms = random_below(400000),
			.t_us = random_below(1u << 30),
		};
		u32 win = 1 + random_below(MSSFRAC_CWND_MAX);
		u32 mss = 88 + random_below(65448);
		u32 growth = mssfrac_growth(&curve, win, mss,
					    random_below(1 << 20));

		if (growth > win / 2 ||
		    (!curve.prior && growth < win / 20) ||
		    (curve.w_est > win && growth < win / 2 &&
		     growth < curve.w_est - win)) {
			printf("# win %u grows by %u\n", win, growth);
			return false;
		}
	}
	return true;
}

/* Two windows of any size after the same events: fast convergence. */
static bool reductions(void)
{
	struct mssfrac_curve curve = {};

	mssfrac_curve_end(&curve, 100 * MSS);
	if (!is(curve.w_max, 100 * MSS) || !is(curve.prior, 100 * MSS))
		return false;
	mssfrac_curve_end(&curve, 80 * MSS);	/* less than before: yields */
	if (!is(curve.w_max, 68 * MSS) || !is(curve.prior, 80 * MSS))
		return false;
	return is(mssfrac_reduced(100 * MSS, MSS), 70 * MSS) &&
	       is(mssfrac_reduced(2 * MSS, MSS), 2 * MSS) &&
	       is(mssfrac_reduced(MSSFRAC_CWND_MAX, MSS), 751619276);
}

static bool counted(void)
{
	/* An ACK of half a segment, of two, of 44 (a stretch ACK). */
	return is(mssfrac_bytes_counted(724, 0, MSS, 2), 724) &&
	       is(mssfrac_bytes_counted(2 * MSS, 2, MSS, 2), 2 * MSS) &&
	       is(mssfrac_bytes_counted(44 * MSS, 44, MSS, 2), 44 * MSS) &&
	       /* A hole is filled: one segment is news, 30 arrived before. */
	       is(mssfrac_bytes_counted(31 * MSS, 1, MSS, 2), 2 * MSS) &&
	       is(mssfrac_bytes_counted(31 * MSS, 1, MSS, 1), MSS) &&
	       /* Segments smaller than the MSS count what they hold. */
	       is(mssfrac_bytes_counted(2000, 20, MSS, 2), 2000);
}

static bool slow_start(void)
{
	u32 win = 10 * MSS;

	return is(mssfrac_slow_start(&win, 100, UINT32_MAX), 0) &&
	       is(win, 10 * MSS + 100) &&
	       is(mssfrac_slow_start(&win, 5 * MSS, 12 * MSS), 3 * MSS + 100) &&
	       is(win, 12 * MSS) &&
	       is(mssfrac_slow_start(&win, MSS, 2 * MSS), MSS) &&
	       is(win, 12 * MSS);
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
		    rate, rate / 1000) &&
	       /* 1 GB in a microsecond, ten times: no overflow. */
	       is(mssfrac_pacing_rate(MSSFRAC_CWND_MAX, MSS, 1, 1000) >> 42,
		  10);
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
			next = now + MSS / (long double)
			       mssfrac_pacing_rate(win, (flying + 2) * MSS,
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
	printf("KTAP version 1\n1..15\n");
	CASE("cube root is exact", roots());
	CASE("curve and K agree with RFC 9438 in long double", curves());
	CASE("a simulated flow follows the curve", follows_cubic());
	CASE("a simulated flow follows Reno's estimate", follows_reno());
	CASE("growth does not depend on what an ACK covers", divided_acks());
	CASE("no stream of ACKs buys more than its bytes", never_dearer());
	CASE("segments hold a small window, and fit a large one", rounding());
	CASE("growth is within 0 and half the window", growth_bounds());
	CASE("reduction and fast convergence", reductions());
	CASE("bytes counted of one ACK", counted());
	CASE("slow start ends at ssthresh", slow_start());
	CASE("pacing rate by what is in flight", pacing());
	CASE("pacing holds the fraction, every segment acknowledged",
	     pacing_holds_the_fraction(1));
	CASE("pacing holds the fraction, every second acknowledged",
	     pacing_holds_the_fraction(2));
	CASE("windows never wrap", mssfrac_cwnd_segments(0, 0) == 1 &&
	     mssfrac_bytes_per_step(MSSFRAC_CWND_MAX, 0, 1) ==
	     MSSFRAC_NEED_MAX);
	return failures || cases != 15;
}
