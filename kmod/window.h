/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fractional-MSS window arithmetic: pure functions of their arguments, so that
 * the unit tests compile them in user space.  All sizes are bytes of payload
 * unless said; nothing here reads a socket, a clock or a setting.
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
#define MSSFRAC_MAX_OPTIONS	40	/* bytes; the most a TCP header holds */
/*
 * Act where more than 1/24 (4.2 %) of a window goes unused: a change of size
 * disturbs how the receiver's window grows, which can cost 1 to 2 %.
 */
#define MSSFRAC_WORTH		24

/* The part of @window that whole segments of @mss fill. */
static inline u32 mssfrac_whole_segments(u32 window, u32 mss)
{
	return mss ? window - window % mss : 0;
}

/* Is using @used of @window bytes a waste worth acting on? */
static inline bool mssfrac_wasteful(u64 used, u32 window)
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
 * Receiver: the window to offer instead of @stock.
 * @space:   bytes the kernel would be ready to queue (already clamped)
 * @current_offer: the window it offered last
 * @mss:     estimate of the sender's segment size (rx_mss_est)
 *
 * Whole segments as the kernel offers them, and of the rest as many steps of
 * MSS/N as fit, where the rest is worth it.  The kernel's own hysteresis at
 * that finer grain: an offer stays until a step more fits.  Never below @stock,
 * so a kernel that offers more keeps its word, and a zero window stays zero:
 * when to close and when to reopen the window is the kernel's decision.
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
 * Receiver: the payload of one segment of a packet of @len bytes, @gso_size
 * bytes a segment (0: one segment, or merged by a device that does not tell).
 * The sender was told @advmss, with the options it was to use; it may leave
 * them out (RFC 6691: MSS + options is what the path bears).
 */
static inline u32 mssfrac_segment_seen(u32 len, u32 gso_size, u32 advmss)
{
	u32 seg = gso_size ? gso_size : len;
	u32 most = advmss + MSSFRAC_MAX_OPTIONS;

	return seg < most ? seg : most;
}

/*
 * Sender: the segment size that lets a whole, even number of segments fill
 * @window; @mss itself where whole MSS already do, to less than a step of
 * MSS/N.
 *
 * Even, because a receiver that acknowledges every second segment leaves the
 * last of an odd count waiting (RFC 1122 section 4.2.3.2, RFC 5681 section
 * 4.2): five whole MSS become six smaller segments.  Whether that, or anything
 * here, delivers more is for the caller to measure.
 *
 * Windows below one MSS: with nothing in flight the kernel sends one window
 * per max(RTO, 200 ms) there, so all of it counts as unused; two segments fill
 * the window as long as each holds MSSFRAC_MIN_SEG bytes.
 */
static inline u32 mssfrac_segment(u32 window, u32 mss, u32 frac, u32 seg_max)
{
	u32 count, rest, seg;

	if (!frac || mss <= MSSFRAC_MIN_SEG || window < MSSFRAC_MIN_SEG)
		return mss;

	if (window < mss)
		return window >= 2 * MSSFRAC_MIN_SEG ? window / 2 : window;

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
	 * Even as well: two halves (try_nudge()) are then one segment to the
	 * byte.  Less than two bytes a segment stay unused.
	 */
	seg = window / count & ~1U;
	return seg < MSSFRAC_MIN_SEG ? mss : seg;
}

/*
 * Sender: the same where a transmit chunk, of twice @half bytes at most, holds no
 * two segments of @mss, as over loopback.  The receiver acknowledges every second
 * segment, so the window opens by two chunks at a time, and out of step with
 * the sender; with two segments to a chunk each chunk is acknowledged.  From
 * two chunks on: less makes segments of which a chunk holds three.
 */
static inline u32 mssfrac_paired_segment(u32 window, u32 mss, u32 half,
					 u32 frac, u32 seg_max)
{
	u32 count;

	if (mss <= half || window / 4 < half || half < MSSFRAC_MIN_SEG)
		return mssfrac_segment(window, mss, frac, seg_max);
	if (!frac)
		return mss;
	count = window / mss + (window % mss >= mssfrac_step(mss, frac));
	if (count > seg_max)
		return mss;

	count = window / half + !!(window % half);
	count += count & 1;
	return window / count & ~1U;
}

/* Sender, tx_steady: from where on the way to @goal the sizes begin to differ. */
static inline u32 mssfrac_steady_start(u32 goal, u32 mss, u32 half)
{
	return goal <= half && half < mss ? half : mss;
}

/* Sender, tx_steady: the next smaller size on the way from @mss to @goal. */
static inline u32 mssfrac_steady_step(u32 seg, u32 goal, u32 mss, u32 frac)
{
	u32 step = mssfrac_step(mss, frac);

	return seg > goal && seg - goal > step ? seg - step : goal;
}

#endif /* MSSFRAC_WINDOW_H */
