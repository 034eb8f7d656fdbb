/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fractional-MSS window arithmetic: pure functions of their arguments, so that
 * the unit tests compile them in user space.  Nothing here reads a socket, a
 * clock or a setting.  Sizes are bytes of payload unless stated otherwise.
 *
 * Sources: Feng et al., "Optimizing 10-Gigabit Ethernet for Networks of
 * Workstations, Clusters, and Grids" (SC2003), section 3.5.1, for the loss and
 * the proposal; RFC 9293 section 3.8.6.2 for silly-window avoidance.
 */
#ifndef MSSFRAC_WINDOW_H
#define MSSFRAC_WINDOW_H

#ifdef __KERNEL__
#include <linux/types.h>
#endif

#define MSSFRAC_MAX_FRAC	64	/* finest step: MSS/64 */
#define MSSFRAC_MIN_SEG		536	/* bytes; RFC 9293 default send MSS */
#define MSSFRAC_MAX_OPTIONS	40	/* bytes; the maximum in a TCP header */
/*
 * Act if more than 1/24 (4.2 %) of a window goes unused.  A change of segment
 * size disturbs when ACKs leave and how the receiver's window grows, which can
 * cost 1 to 2 %.
 */
#define MSSFRAC_WORTH		24

/* The part of @window that full-sized segments of @mss fill. */
static inline u32 mssfrac_whole_segments(u32 window, u32 mss)
{
	return mss ? window - window % mss : 0;
}

/* Does using only @used of @window bytes waste enough to act? */
static inline bool mssfrac_wasteful(u32 used, u32 window)
{
	return used < window - window / MSSFRAC_WORTH;
}

/* The step MSS/N; at least one byte. */
static inline u32 mssfrac_step(u32 mss, u32 frac)
{
	u32 step = frac ? mss / frac : mss;

	return step ? step : 1;
}

/*
 * Receiver: the window to advertise instead of @stock.
 * @space:         bytes that the kernel would accept (already clamped)
 * @current_offer: the window advertised last
 * @mss:           estimate of the sender's segment size (rx_mss_est)
 *
 * Full-sized segments as the kernel advertises them, and in addition as many
 * steps of MSS/N as fit into the remainder, if the remainder is worth it.  As
 * in the kernel, with smaller steps, a window stays until one more step fits.
 * The result is never below @stock, so a larger window of the kernel stands.
 * A zero window stays zero: the kernel decides when to close and to reopen it.
 *
 * Steps below the MSS deviate from RFC 9293 section 3.8.6.2.2, which lets the
 * right edge move only by min(Fr * buffer, MSS) or more, with Fr = 1/2.
 */
static inline u32 mssfrac_offer(u32 stock, u32 space, u32 current_offer,
				u32 mss, u32 frac, u32 seg_max)
{
	u32 step, whole, offer;

	if (!stock || !frac || !mss || space / mss > seg_max ||
	    !mssfrac_wasteful(stock, space))
		return stock;

	step = mssfrac_step(mss, frac);
	whole = mssfrac_whole_segments(space, mss);
	offer = current_offer;
	if (offer < whole || offer > space || space - offer >= step)
		offer = whole + (space - whole) - (space - whole) % step;

	return offer > stock ? offer : stock;
}

/*
 * Receiver: is a raised window worth it?
 * @full: bytes that the kernel accepts once the reader has emptied the buffer
 * @mss:  payload of a full-sized segment
 *
 * If full-sized segments fill that window, those in between are better left as
 * they are, too: the kernel announces at once that a read has doubled the window
 * (__tcp_cleanup_rbuf), and a raised one would not double.
 */
static inline bool mssfrac_worth_raising(u32 full, u32 mss, u32 seg_max)
{
	return mss && full / mss <= seg_max &&
	       mssfrac_wasteful(mssfrac_whole_segments(full, mss), full);
}

/*
 * Receiver: the mean payload of @segs data segments that brought @bytes in
 * sequence; 0 if there was none.
 * @advmss: the MSS advertised to the sender, less its usual options.  The
 *          sender may leave options out and send that much more payload
 *          (RFC 6691: the path carries MSS plus options).
 */
static inline u32 mssfrac_segment_seen(u32 bytes, u32 segs, u32 advmss)
{
	u32 seg = segs ? bytes / segs : 0;
	u32 most = advmss + MSSFRAC_MAX_OPTIONS;

	return seg < most ? seg : most;
}

/*
 * Sender: the segment size for a window below one MSS, which the kernel sends
 * once per max(RTO, 200 ms).  One segment fills it: two would take the receiver
 * more memory per byte, and so lower its window (scaling_ratio, Linux 6.6 and
 * later).  Returns @mss where the kernel's own size stays.
 */
static inline u32 mssfrac_small_segment(u32 window, u32 mss)
{
	return window < mss && window >= MSSFRAC_MIN_SEG ? window : mss;
}

/*
 * Sender: the segment size with which an even number of segments fills @window.
 * Returns @mss if full-sized segments fill it up to less than a step of MSS/N,
 * or if it holds none.
 *
 * Even, because a receiver that acknowledges every second segment delays the
 * ACK for the last one of an odd count (RFC 1122 section 4.2.3.2, RFC 5681
 * section 4.2).  Five full-sized segments therefore become six smaller ones.
 */
static inline u32 mssfrac_segment(u32 window, u32 mss, u32 frac, u32 seg_max)
{
	u32 count, rest, seg;

	if (!frac || mss <= MSSFRAC_MIN_SEG || window < mss)
		return mss;

	count = window / mss;
	rest = window % mss;
	if (rest >= mssfrac_step(mss, frac))
		count++;
	else if (!(count & 1))
		return mss;
	if (count > seg_max)
		return mss;
	count += count & 1;

	/*
	 * An even size, so that two halves (nudge()) are exactly one
	 * segment.  It leaves less than two bytes per segment of the window.
	 */
	seg = window / count & ~1U;
	return seg < MSSFRAC_MIN_SEG ? mss : seg;
}

/*
 * Sender: the same if a GSO skb, of at most twice @half bytes, cannot hold two
 * segments of @mss, as over loopback.  The receiver acknowledges every second
 * segment, so the window opens by two skbs at a time, out of step with the
 * sender.  With two segments per skb, every skb is acknowledged.  Only for
 * windows of two skbs and more: in smaller ones an skb would hold three.
 */
static inline u32 mssfrac_paired_segment(u32 window, u32 mss, u32 half,
					 u32 frac, u32 seg_max)
{
	u32 count, seg;

	if (mss <= half || window / 4 < half || half < MSSFRAC_MIN_SEG)
		return mssfrac_segment(window, mss, frac, seg_max);
	if (!frac)
		return mss;
	count = window / mss + (window % mss >= mssfrac_step(mss, frac));
	if (count > seg_max)
		return mss;

	count = window / half + !!(window % half);
	count += count & 1;
	seg = window / count & ~1U;
	return seg < MSSFRAC_MIN_SEG ? mss : seg;
}

/*
 * Sender: @seg, or a smaller one, where the peer does not scale its window.  A
 * Linux receiver then advertises multiples of the segments that it gets.  With
 * one of ours less, a full-sized segment must still fit: without one the
 * receiver would never advertise more again.
 */
static inline u32 mssfrac_unscaled_segment(u32 seg, u32 window, u32 mss,
					   u32 seg_max)
{
	u32 count;

	if (seg >= mss || window - seg >= mss)
		return seg;
	if (window <= mss)
		return mss;
	count = window / (window - mss) + !!(window % (window - mss));
	count += count & 1;
	seg = window / count & ~1U;
	return count > seg_max || seg < MSSFRAC_MIN_SEG ? mss : seg;
}

/* Sender, tx_steady: the size at which the descent to @goal begins. */
static inline u32 mssfrac_steady_start(u32 goal, u32 mss, u32 half)
{
	return goal <= half && half < mss ? half : mss;
}

/* Sender, tx_steady: the next smaller size on the descent from @mss to @goal. */
static inline u32 mssfrac_steady_step(u32 seg, u32 goal, u32 mss, u32 frac)
{
	u32 step = mssfrac_step(mss, frac);

	return seg > goal && seg - goal > step ? seg - step : goal;
}

#endif /* MSSFRAC_WINDOW_H */
