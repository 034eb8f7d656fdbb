/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Arithmetic of the congestion control (cong.c): pure functions of their
 * arguments, so that the unit tests compile them in user space.  Windows and
 * segment sizes are bytes of payload; nothing here reads a socket or a clock.
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
/* Bytes; more than any receive window (65535 << 14, RFC 7323). */
#define MSSFRAC_CWND_MAX	(1U << 30)
/* Bytes acknowledged per step, at most; so that credit fits 32 bits. */
#define MSSFRAC_NEED_MAX	(1U << 31)

/* beta = 7/10: what a reduction leaves (RFC 9438 section 4.6). */
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
/* ms; 2^20: its cube fits 64 bits, and it is longer than any curve. */
#define MSSFRAC_TIME_MAX_MS	(1U << 20)
/* Segments; a window of up to these is paced, see mssfrac_pacing_rate(). */
#define MSSFRAC_PACED_SEGS	8
/* Where no loss is known yet: 1/20 per round trip, as tcp_cubic.c. */
#define MSSFRAC_BLIND		20

/* Growth between two reductions of the window (RFC 9438 section 4.1.2). */
struct mssfrac_curve {
	u32 w_max;	/* where the curve is flat */
	u32 w_est;	/* what Reno would have reached; 0: not begun */
	u32 prior;	/* window before the reduction; 0: no loss yet */
	u32 k_ms;	/* from the curve's start to w_max */
	u32 t_us;	/* since the start, only while the window was the limit */
};

/* Cube root, rounded down; exact, one bit of the result a turn. */
static inline u32 mssfrac_cbrt(u64 a)
{
	u64 root = 0, rise;
	int shift;

	for (shift = 63; shift >= 0; shift -= 3) {
		root <<= 1;
		rise = 3 * root * (root + 1) + 1;	/* to (root + 1)^3 */
		if (a >> shift >= rise) {
			a -= rise << shift;
			root++;
		}
	}
	return root;
}

/*
 * @win in segments of @seg bytes: the kernel's snd_cwnd.  Rounded up while it is
 * small, where pacing holds the fraction; then down, as tcp_cubic.c rounds: up,
 * a flow would have a segment more than its share beside Reno.
 */
static inline u32 mssfrac_cwnd_segments(u32 win, u32 seg)
{
	u32 count = seg ? win / seg : 0;

	if (count < MSSFRAC_PACED_SEGS && seg && win % seg)
		count++;
	return count ? count : 1;
}

/*
 * The bytes of one ACK that count (RFC 3465 section 2): those it acknowledges,
 * never more, so that dividing ACKs gains nothing.  An ACK may also cover data
 * that arrived long before it (after a timeout, or behind a hole); of these
 * @limit segments count (L = 2, after a timeout 1, section 2.3) or the
 * @delivered segments that are news, where that is more.  So a stretch ACK
 * counts as the ACKs it stands for, as in tcp_slow_start().
 */
static inline u32 mssfrac_bytes_counted(u32 acked, u32 delivered, u32 mss,
					u32 limit)
{
	u64 most = (u64)(delivered > limit ? delivered : limit) * mss;

	return acked < most ? acked : most;
}

/* Slow start by @acked bytes up to @ssthresh; what is left of them. */
static inline u32 mssfrac_slow_start(u32 *win, u32 acked, u32 ssthresh)
{
	u32 room = ssthresh > *win ? ssthresh - *win : 0;
	u32 grown = acked < room ? acked : room;

	*win += grown;
	return acked - grown;
}

/*
 * How many bytes must be acknowledged for each step, so that @win grows by
 * @delta while @win bytes are.  Rounded up: never faster than that.
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
 * Steps that @acked bytes buy at @need bytes each; the rest stays in @credit.
 * Credit from a time of dearer steps buys one step at most, as in
 * tcp_cong_avoid_ai().
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

/* What remains of @win after a congestion event; at least two segments. */
static inline u32 mssfrac_reduced(u32 win, u32 mss)
{
	u32 left = div_u64((u64)win * MSSFRAC_BETA_NUM, MSSFRAC_BETA_DEN);

	return left > 2 * mss ? left : 2 * mss;
}

/* A congestion event at @win: RFC 9438 sections 4.6 and 4.7. */
static inline void mssfrac_curve_end(struct mssfrac_curve *curve, u32 win)
{
	/* Fast convergence: the flow had to yield, make room for others. */
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

/* W_cubic, figure 1, a round trip ahead of the curve's time. */
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
 * By how much @win should grow in a round trip: towards the higher of the
 * curve and Reno's estimate (section 4.3), by half of it at most (section
 * 4.2).
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
 * By how much Reno's estimate grows in a round trip: section 4.3.  Always
 * alpha, as tcp_cubic.c: the section would have a whole segment once the
 * estimate is back where the last reduction came, and was measured to take
 * 1.7 times the share of a Reno flow then.
 */
static inline u32 mssfrac_reno_growth(u32 mss)
{
	return mss * MSSFRAC_ALPHA_NUM / MSSFRAC_ALPHA_DEN;
}

/*
 * Bytes per second at which to send the next segment of a small window.
 * @ahead:   bytes in flight with that segment and one more
 * @srtt8:   8 times the smoothed round trip, us (tcp_sock's srtt_us); not 0
 * @percent: of @win per round trip, at most
 *
 * snd_cwnd of such a window is rounded up, so the kernel would let up to a
 * segment more into the network.  Where the window is full but for a segment,
 * the rate is @win per round trip, and so is what is in flight.  (But for two,
 * in effect: a receiver acknowledges every second one.)  With less in flight it
 * is higher by as much as is missing, and @percent at most.
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
