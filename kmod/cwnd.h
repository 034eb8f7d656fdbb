/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Arithmetic of the congestion control (cong.c): pure functions of their
 * arguments, so that the unit tests compile them in user space.  Nothing here
 * reads a socket or a clock.  Windows and segment sizes are bytes of payload.
 *
 * Sources: RFC 9438 (CUBIC), RFC 3465 (byte counting), RFC 5681.
 */
#ifndef MSSFRAC_CWND_H
#define MSSFRAC_CWND_H

#ifdef __KERNEL__
#include <linux/math64.h>
#include <linux/types.h>
#else
static inline u64 div_u64(u64 dividend, u32 divisor)
{
	return dividend / divisor;
}
#endif

/* In congestion avoidance the window moves in steps of MSS/64. */
#define MSSFRAC_CWND_FRAC	64
/* Bytes; above the largest receive window (65535 << 14, RFC 7323). */
#define MSSFRAC_CWND_MAX	(1U << 30)
/* Maximum of bytes acknowledged per step, so that the credit fits 32 bits. */
#define MSSFRAC_NEED_MAX	(1U << 31)

/* beta = 7/10: the share that a reduction leaves (RFC 9438 section 4.6). */
#define MSSFRAC_BETA_NUM	7
#define MSSFRAC_BETA_DEN	10
/* alpha = 3 * (1 - beta) / (1 + beta) = 9/17 (section 4.3). */
#define MSSFRAC_ALPHA_NUM	9
#define MSSFRAC_ALPHA_DEN	17
/*
 * C = 0.4 segments/s^3 (section 5.1); times are ms here, so a cube of 1 s^3
 * is 10^9, and 1/C = 2,500,000 ms^3 per 1/1000 of a segment.
 */
#define MSSFRAC_CUBE_PER_MILLI	2500000U
/* ms; 2^20: longer than any curve, and its cube fits 64 bits. */
#define MSSFRAC_TIME_MAX_MS	(1U << 20)
/* Segments; larger windows are not paced, see mssfrac_pacing_rate(). */
#define MSSFRAC_PACED_SEGS	8
/* Growth per round trip before the first loss: 1/20, as in tcp_cubic.c. */
#define MSSFRAC_BLIND		20

/* Growth between two reductions of the window (RFC 9438 section 4.1.2). */
struct mssfrac_curve {
	u32 w_max;	/* bytes; the plateau of the curve */
	u32 w_est;	/* bytes; window that Reno would have; 0: not begun */
	u32 prior;	/* bytes; window before the reduction; 0: no loss yet */
	u32 k_ms;	/* time from the start of the curve to w_max */
	u32 t_us;	/* time since the start in which the window was the limit */
};

/*
 * Cube root, rounded down; exact, one bit of the result per iteration.  What is
 * left of @a is below 2^63 after the first of them, so a difference has its sign
 * in the highest bit.  A branch would be another path for the verifier of BPF,
 * and 22 of them more paths than it follows.
 */
static inline u32 mssfrac_cbrt(u64 a)
{
	u64 root = 0, rise, less;
	int shift;

	for (shift = 63; shift >= 0; shift -= 3) {
		root <<= 1;
		rise = 3 * root * (root + 1) + 1;	/* to (root + 1)^3 */
		less = ((a >> shift) - rise) >> 63;	/* 1: root stays */
		a -= (rise << shift) & (less - 1);
		root += 1 - less;
	}
	return root;
}

/*
 * @win in segments of @seg bytes, for the kernel's snd_cwnd.  A small window is
 * rounded up, because pacing preserves the fraction.  A larger one is rounded
 * down, as in tcp_cubic.c; rounded up, it would hold one segment more than its
 * fair share beside Reno.
 */
static inline u32 mssfrac_cwnd_segments(u32 win, u32 seg)
{
	u32 count = seg ? win / seg : 0;

	if (count < MSSFRAC_PACED_SEGS && seg && win % seg)
		count++;
	return count ? count : 1;
}

/*
 * The bytes of one ACK that count (RFC 3465 section 2).  Never more than it
 * acknowledges, so that ACK division gains nothing.  An ACK may also cover data
 * that arrived long before (after a timeout, or behind a hole).  Of that,
 * @limit segments count (L = 2, after a timeout 1, section 2.3), or the
 * @delivered segments that are newly delivered, whichever is more.  A stretch
 * ACK therefore counts as the ACKs that it replaces, as in tcp_slow_start().
 */
static inline u32 mssfrac_bytes_counted(u32 acked, u32 delivered, u32 mss,
					u32 limit)
{
	u64 most = (u64)(delivered > limit ? delivered : limit) * mss;

	return acked < most ? acked : most;
}

/* Slow start by @acked bytes up to @ssthresh; returns the unused bytes. */
static inline u32 mssfrac_slow_start(u32 *win, u32 acked, u32 ssthresh)
{
	u32 room = ssthresh > *win ? ssthresh - *win : 0;
	u32 grown = acked < room ? acked : room;

	*win += grown;
	return acked - grown;
}

/*
 * Bytes to be acknowledged per step, so that @win grows by @delta for each @win
 * bytes acknowledged.  Rounded up, so that growth is never faster.
 */
static inline u32 mssfrac_bytes_per_step(u32 win, u32 delta, u32 step)
{
	u64 need;

	if (!delta)
		return MSSFRAC_NEED_MAX;
	need = div_u64((u64)win * step + delta - 1, delta);
	if (!need)
		need = 1;
	return need < MSSFRAC_NEED_MAX ? need : MSSFRAC_NEED_MAX;
}

/*
 * Steps for @acked bytes at @need bytes each; the remainder stays in @credit.
 * Credit that was saved while steps were more expensive gives at most one step,
 * as in tcp_cong_avoid_ai().
 */
static inline u32 mssfrac_buy_steps(u32 *credit, u32 acked, u32 need)
{
	u32 steps = 0, bought;

	if (*credit >= need) {
		*credit = 0;
		steps = 1;
	}
	*credit += acked;
	bought = *credit / need;
	*credit -= bought * need;
	return steps + bought;
}

/* @win after a congestion event; at least two segments. */
static inline u32 mssfrac_reduced(u32 win, u32 mss)
{
	u32 left = div_u64((u64)win * MSSFRAC_BETA_NUM, MSSFRAC_BETA_DEN);

	return left > 2 * mss ? left : 2 * mss;
}

/* A congestion event at @win: RFC 9438 sections 4.6 and 4.7. */
static inline void mssfrac_curve_end(struct mssfrac_curve *curve, u32 win)
{
	/* Fast convergence: the flow lost bandwidth, so release more of it. */
	if (win < curve->w_max)
		curve->w_max = div_u64((u64)win * (MSSFRAC_BETA_DEN +
						   MSSFRAC_BETA_NUM),
				       2 * MSSFRAC_BETA_DEN);
	else
		curve->w_max = win;
	curve->prior = win;
	curve->w_est = 0;
}

/* Congestion avoidance begins at @win: section 4.2, figure 2 for K. */
static inline void mssfrac_curve_begin(struct mssfrac_curve *curve, u32 win,
				       u32 mss)
{
	if (curve->w_max < win)
		curve->w_max = win;
	/* (W_max - cwnd) / C in ms^3; at most 2^30 * 2.5 * 10^9 < 2^62 */
	curve->k_ms = mssfrac_cbrt(div_u64((u64)(curve->w_max - win) *
					   MSSFRAC_CUBE_PER_MILLI * 1000,
					   mss));
	curve->w_est = win;
	curve->t_us = 0;
}

/* W_cubic (figure 1), one round trip ahead of the time of the curve. */
static inline u32 mssfrac_curve_at(const struct mssfrac_curve *curve, u32 mss,
				   u32 rtt_us)
{
	u64 t = div_u64((u64)curve->t_us + rtt_us, 1000);
	bool below = t < curve->k_ms;
	u64 off = below ? curve->k_ms - t : t - curve->k_ms;
	u64 change;

	if (off > MSSFRAC_TIME_MAX_MS)
		off = MSSFRAC_TIME_MAX_MS;
	/* 2^60 / 2.5 * 10^6 thousandths of a segment, times 2^16 */
	change = div_u64(div_u64(off * off * off, MSSFRAC_CUBE_PER_MILLI) * mss,
			 1000);
	if (below)
		return change < curve->w_max ? curve->w_max - change : 0;
	change += curve->w_max;
	return change < MSSFRAC_CWND_MAX ? change : MSSFRAC_CWND_MAX;
}

/*
 * Growth of @win per round trip: towards the higher of the curve and Reno's
 * estimate (section 4.3), and by at most half of @win (section 4.2).
 */
static inline u32 mssfrac_growth(const struct mssfrac_curve *curve, u32 win,
				 u32 mss, u32 rtt_us)
{
	u32 target = mssfrac_curve_at(curve, mss, rtt_us);
	u32 most = win / 2;

	if (target < curve->w_est)
		target = curve->w_est;
	if (!curve->prior && target < win + win / MSSFRAC_BLIND)
		target = win + win / MSSFRAC_BLIND;
	if (target <= win)
		return 0;
	return target - win < most ? target - win : most;
}

/*
 * Growth of Reno's estimate per round trip (section 4.3).  Always alpha, as in
 * tcp_cubic.c.  The section prescribes a full segment once the estimate has
 * reached the window of the last reduction; that was measured to take 1.7 times
 * the share of a Reno flow.
 */
static inline u32 mssfrac_reno_growth(u32 mss)
{
	return mss * MSSFRAC_ALPHA_NUM / MSSFRAC_ALPHA_DEN;
}

/*
 * Pacing rate, in bytes per second, for the next segment of a small window.
 * @ahead:   bytes in flight, including that segment and one more
 * @srtt8:   8 times the smoothed round trip, us (tcp_sock's srtt_us); not 0
 * @percent: maximum of the rate, in percent of @win per round trip
 *
 * snd_cwnd of a small window is rounded up, so the kernel alone would send up
 * to a segment too much.  When the window is full except for one segment, the
 * rate is @win per round trip, which also limits the bytes in flight to @win.
 * (In effect except for two segments, because a receiver acknowledges every
 * second one.)  With fewer bytes in flight the rate is higher by the missing
 * share, up to @percent.
 */
static inline u64 mssfrac_pacing_rate(u32 win, u32 ahead, u32 srtt8,
				      u32 percent)
{
	u64 base = div_u64((u64)win * 8 * 1000000, srtt8);
	u64 gain = div_u64((u64)percent << 16, 100);
	u64 need = ahead < win ? div_u64((u64)win << 16, ahead) : 1 << 16;

	if (base > 1ULL << 42)	/* 4 TB/s; the product below fits 64 bits */
		base = 1ULL << 42;
	return base * (need < gain ? need : gain) >> 16;
}

#endif /* MSSFRAC_CWND_H */
