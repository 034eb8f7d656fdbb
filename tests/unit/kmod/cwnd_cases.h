/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cases of kmod/cwnd.h that need no floating point, shared by the userspace
 * test (test_cwnd.c) and the KUnit suite (tests/kunit): rows of an expression
 * and its value, points of the curve, and properties that must hold for random
 * arguments.  Each user includes cwnd.h and window.h first.
 */
#ifndef CWND_CASES_H
#define CWND_CASES_H

#define CWND_MSS 1448

/* X(name, got, wanted) */
#define CWND_COUNTED(X)							\
	X("an ACK of half a segment counts half",			\
	  mssfrac_bytes_counted(724, 0, CWND_MSS, 2), 724)		\
	X("an ACK of two segments counts two",				\
	  mssfrac_bytes_counted(2 * CWND_MSS, 2, CWND_MSS, 2),		\
	  2 * CWND_MSS)							\
	X("a stretch ACK of 44 segments counts 44",			\
	  mssfrac_bytes_counted(44 * CWND_MSS, 44, CWND_MSS, 2),	\
	  44 * CWND_MSS)						\
	/* A hole is filled: one segment is news, 30 arrived before. */	\
	X("an ACK past a filled hole counts two segments",		\
	  mssfrac_bytes_counted(31 * CWND_MSS, 1, CWND_MSS, 2),		\
	  2 * CWND_MSS)							\
	X("an ACK past a filled hole after a timeout counts one",	\
	  mssfrac_bytes_counted(31 * CWND_MSS, 1, CWND_MSS, 1),		\
	  CWND_MSS)							\
	X("segments smaller than the MSS count the bytes they hold",	\
	  mssfrac_bytes_counted(2000, 20, CWND_MSS, 2), 2000)

#define CWND_SLOW_START(X)						\
	X("slow start below ssthresh uses all bytes",			\
	  cwnd_slow_start(10, 100, U32_MAX, false), 0)			\
	X("slow start grows by the bytes acknowledged",			\
	  cwnd_slow_start(10, 100, U32_MAX, true), 10 * CWND_MSS + 100)	\
	X("slow start hands back the bytes beyond ssthresh",		\
	  cwnd_slow_start(10, 5 * CWND_MSS, 12 * CWND_MSS, false),	\
	  3 * CWND_MSS)							\
	X("slow start ends at ssthresh",				\
	  cwnd_slow_start(10, 5 * CWND_MSS, 12 * CWND_MSS, true),	\
	  12 * CWND_MSS)						\
	X("above ssthresh slow start does nothing",			\
	  cwnd_slow_start(12, CWND_MSS, 2 * CWND_MSS, false), CWND_MSS)

#define CWND_REDUCED(X)							\
	X("a first reduction remembers the window",			\
	  cwnd_after_events(100, 0).w_max, 100 * CWND_MSS)		\
	X("fast convergence gives way when the window shrank",		\
	  cwnd_after_events(100, 80).w_max, 68 * CWND_MSS)		\
	X("the window before the last reduction is kept",		\
	  cwnd_after_events(100, 80).prior, 80 * CWND_MSS)		\
	X("a reduction leaves 7/10",					\
	  mssfrac_reduced(100 * CWND_MSS, CWND_MSS), 70 * CWND_MSS)	\
	X("a reduction leaves two segments at least",			\
	  mssfrac_reduced(2 * CWND_MSS, CWND_MSS), 2 * CWND_MSS)	\
	X("the largest window is reduced without overflow",		\
	  mssfrac_reduced(MSSFRAC_CWND_MAX, CWND_MSS), 751619276)

#define CWND_LIMITS(X)							\
	X("no window is less than one segment",				\
	  mssfrac_cwnd_segments(0, 0), 1)				\
	X("a window that must not grow needs the most bytes per step",	\
	  mssfrac_bytes_per_step(MSSFRAC_CWND_MAX, 0, 1),		\
	  MSSFRAC_NEED_MAX)						\
	/* 1 GB in a microsecond, ten times. */				\
	X("the highest pacing rate does not overflow",			\
	  mssfrac_pacing_rate(MSSFRAC_CWND_MAX, CWND_MSS, 1, 1000) >> 42, 10) \
	X("the largest cube root is exact",				\
	  mssfrac_cbrt(U64_MAX), 2642245)

static inline u32 cwnd_slow_start(u32 segments, u32 acked, u32 ssthresh,
				  bool window)
{
	u32 win = segments * CWND_MSS;
	u32 left = mssfrac_slow_start(&win, acked, ssthresh);

	return window ? win : left;
}

/* Congestion events at windows of @first and @second segments (0: none). */
static inline struct mssfrac_curve cwnd_after_events(u32 first, u32 second)
{
	struct mssfrac_curve curve = {};

	mssfrac_curve_end(&curve, first * CWND_MSS);
	if (second)
		mssfrac_curve_end(&curve, second * CWND_MSS);
	return curve;
}

/*
 * Points of W_cubic(t) = 0.4 MSS (t - K)^3 + W_max.  test_cwnd.c compares K and
 * the window with the formula in long double; KUnit, in a kernel without
 * floating point, with the same numbers.
 */
static const struct cwnd_point {
	u32 w_max, win, mss, t_us, rtt_us;
	u32 k_ms, at;
} cwnd_points[] = {
	{ 2896000, 2027200, 1448, 0, 0, 11447, 2027234 },
	{ 2896000, 2027200, 1448, 1000000, 100000, 11447, 2254390 },
	{ 2896000, 2027200, 1448, 6000000, 100000, 11447, 2807457 },
	{ 2896000, 2027200, 1448, 12000000, 100000, 11447, 2896160 },
	{ 2896000, 2027200, 1448, 30000000, 250000, 11447, 6746436 },
	{ 57920, 40544, 1448, 500000, 5000, 3107, 47718 },
	{ 35792, 26844, 8948, 0, 200, 1357, 26853 },
	{ 35792, 26844, 8948, 2000000, 20000, 1357, 36829 },
	{ 53600, 53600, 536, 3000000, 1000, 0, 59394 },
	{ 1073741824, 751619274, 88, 1, 1, 209166, 751623125 },
	{ 1073741824, 751619274, 65535, 999999999, 999999, 23076, 1073741824 },
};

#define CWND_POINTS (sizeof(cwnd_points) / sizeof(cwnd_points[0]))

static inline struct mssfrac_curve cwnd_curve_of(const struct cwnd_point *p)
{
	struct mssfrac_curve curve = { .w_max = p->w_max, .prior = p->w_max };

	mssfrac_curve_begin(&curve, p->win, p->mss);
	curve.t_us = p->t_us;
	return curve;
}

/* xorshift64: the same arguments in every run. */
static inline u64 cwnd_random64(void)
{
	static u64 x = 88172645463325252ULL;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return x;
}

static inline u32 cwnd_random(u32 limit)
{
	/* The kernel has no 64-bit modulo on every machine. */
	return (u32)cwnd_random64() % limit;
}

static inline bool cwnd_is_root(u64 a)
{
	u64 root = mssfrac_cbrt(a);

	return root <= 2642245 && root * root * root <= a &&
	       (root == 2642245 ||
		(root + 1) * (root + 1) * (root + 1) > a);
}

/* Arguments of a property that failed, for its report. */
struct cwnd_args {
	u64 a;
	u32 win, mss, delta;
};

#define CWND_ARGS "a %llu win %u mss %u delta %u"
#define CWND_ARGS_OF(x) (unsigned long long)(x)->a, (x)->win, (x)->mss, (x)->delta

static inline bool cwnd_roots(struct cwnd_args *x)
{
	u64 i = cwnd_random(2642245) + 1;

	x->a = cwnd_random64() >> cwnd_random(64);
	if (!cwnd_is_root(x->a))
		return false;
	x->a = i * i * i;	/* where the root changes */
	return cwnd_is_root(x->a) && cwnd_is_root(x->a - 1);
}

/* No stream of ACKs buys more steps than its bytes are worth. */
static inline bool cwnd_bytes_buy_steps(struct cwnd_args *x)
{
	u32 step, need, credit = 0, j;
	u64 acked = 0, steps = 0;

	x->mss = 88 + cwnd_random(65448);
	x->win = 2 * x->mss + cwnd_random(1 << 24);
	x->delta = 1 + cwnd_random(x->win / 2);
	step = mssfrac_step(x->mss, MSSFRAC_CWND_FRAC);
	need = mssfrac_bytes_per_step(x->win, x->delta, step);
	for (j = 0; j < 50; j++) {
		u32 bytes = cwnd_random(3 * x->mss);

		acked += bytes;
		steps += mssfrac_buy_steps(&credit, bytes, need);
	}
	/* steps * step / delta <= acked / win, and all but one came */
	return steps * step * x->win <= acked * x->delta &&
	       steps == div_u64(acked, need) && steps * need + credit == acked;
}

/*
 * Up to MSSFRAC_PACED_SEGS segments, snd_cwnd holds the window; beyond, the
 * window holds snd_cwnd.
 */
static inline bool cwnd_rounding(struct cwnd_args *x)
{
	u64 segs, low, high;
	bool up;

	x->mss = 88 + cwnd_random(65448);
	x->win = cwnd_random(cwnd_random(2) ? MSSFRAC_CWND_MAX :
			     2 * MSSFRAC_PACED_SEGS * x->mss);
	segs = mssfrac_cwnd_segments(x->win, x->mss);
	up = x->win <= MSSFRAC_PACED_SEGS * x->mss;
	low = up ? segs - 1 : segs;
	high = up ? segs : segs + 1;
	/* (low, high] going up, [low, high) going down */
	return !x->win || (low * x->mss + up <= x->win &&
			   high * x->mss + up > x->win);
}

/* Growth is within 0 and half the window. */
static inline bool cwnd_growth(struct cwnd_args *x)
{
	struct mssfrac_curve curve = {
		.w_max = cwnd_random(MSSFRAC_CWND_MAX),
		.w_est = 1 + cwnd_random(MSSFRAC_CWND_MAX),
		.prior = cwnd_random(2) * (1 + cwnd_random(1 << 28)),
		.k_ms = cwnd_random(400000),
		.t_us = cwnd_random(1u << 30),
	};

	x->win = 1 + cwnd_random(MSSFRAC_CWND_MAX);
	x->mss = 88 + cwnd_random(65448);
	x->delta = mssfrac_growth(&curve, x->win, x->mss, cwnd_random(1 << 20));
	return x->delta <= x->win / 2 &&
	       (curve.prior || x->delta >= x->win / 20) &&
	       (curve.w_est <= x->win || x->delta >= x->win / 2 ||
		x->delta >= curve.w_est - x->win);
}

static const struct cwnd_property {
	const char *name;
	bool (*holds)(struct cwnd_args *args);
} cwnd_properties[] = {
	{ "the cube root is exact", cwnd_roots },
	{ "no stream of ACKs buys more than its bytes", cwnd_bytes_buy_steps },
	{ "segments hold a small window, and fit a large one", cwnd_rounding },
	{ "growth is within 0 and half the window", cwnd_growth },
};

#endif /* CWND_CASES_H */
