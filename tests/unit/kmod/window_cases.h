/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cases of kmod/window.h, shared by the userspace test (test_window.c) and the
 * KUnit suite (tests/kunit): rows of an expression and its value, and
 * properties that must hold for random arguments.  Each user includes window.h
 * first and decides how to report.
 */
#ifndef WINDOW_CASES_H
#define WINDOW_CASES_H

/* X(name, got, wanted).  SC2003 paper, section 3.5.1: 33,000 B, 26,844 B. */
#define WINDOW_PAPER(X)							\
	X("33,000 B of space advertise 26,844 B",			\
	  mssfrac_whole_segments(33000, 8948), 26844)			\
	X("a window of 26,844 B lets 17,920 B be sent",			\
	  mssfrac_whole_segments(26844, 8960), 17920)			\
	X("26 KB hold 18 KB of 9 KB segments",				\
	  mssfrac_whole_segments(26 << 10, 9 << 10), 18 << 10)		\
	X("48 KB ideal hold 5 segments",				\
	  mssfrac_whole_segments(48 << 10, 8948) / 8948, 5)

#define WINDOW_SENDER(X)						\
	X("sender fills 26,052 B with four segments",			\
	  mssfrac_segment(26052, 8948, 64, 16), 6512)			\
	X("sender makes six segments of five full-sized ones",		\
	  mssfrac_segment(44740, 8948, 64, 16), 7456)			\
	X("sender leaves two full-sized segments alone",		\
	  mssfrac_segment(17896, 8948, 64, 16), 8948)			\
	X("one segment fills a window below one MSS",			\
	  mssfrac_small_segment(8192, 65483), 8192)			\
	X("down to the smallest segment",				\
	  mssfrac_small_segment(536, 8948), 536)			\
	X("sender leaves a silly window to the kernel",			\
	  mssfrac_small_segment(535, 8948), 8948)			\
	X("a window of one segment is no small one",			\
	  mssfrac_small_segment(8948, 8948), 8948)			\
	X("and a small one is not divided",				\
	  mssfrac_segment(8192, 65483, 64, 16), 65483)			\
	X("sender leaves many segments alone",				\
	  mssfrac_segment(1 << 20, 8948, 64, 16), 8948)			\
	X("a coarse step leaves a small remainder alone",		\
	  mssfrac_segment(2 * 8948 + 1000, 8948, 8, 16), 8948)		\
	X("tx_frac 0 is off",						\
	  mssfrac_segment(26052, 8948, 0, 16), 8948)

/* Loopback: MSS 65483, of which a GSO skb of 65215 bytes holds less than one. */
#define WINDOW_PAIRED(X)						\
	X("6.2 segments over loopback become fourteen halves",		\
	  mssfrac_paired_segment(405995, 65483, 32607, 64, 16), 28998)	\
	X("where a GSO skb holds two segments they are not halved",	\
	  mssfrac_paired_segment(44740, 8948, 32607, 64, 16), 7456)	\
	X("less than two GSO skbs are not halved",			\
	  mssfrac_paired_segment(124417, 65483, 32607, 64, 16), 62208)	\
	X("sixteen segments are the most that are halved",		\
	  mssfrac_paired_segment(16 * 65483, 65483, 32607, 64, 16), 30814) \
	X("seventeen are left alone",					\
	  mssfrac_paired_segment(16 * 65483 + 1023, 65483, 32607, 64, 16), \
	  65483)

/* Without window scaling: a full-sized segment beside one of ours. */
#define WINDOW_UNSCALED(X)						\
	X("a size that leaves room for a full-sized segment stays",	\
	  mssfrac_unscaled_segment(6512, 26052, 8948, 32), 6512)	\
	X("exactly so much room is enough",				\
	  mssfrac_unscaled_segment(4000, 12948, 8948, 32), 4000)	\
	X("one byte less is not: four segments",			\
	  mssfrac_unscaled_segment(4000, 12947, 8948, 32), 3236)	\
	X("11,632 B by 8948 take six segments and not two",		\
	  mssfrac_unscaled_segment(5816, 11632, 8948, 32), 1938)	\
	X("the MSS stays",						\
	  mssfrac_unscaled_segment(8948, 11632, 8948, 32), 8948)	\
	X("too many segments: the MSS",					\
	  mssfrac_unscaled_segment(4600, 9200, 8948, 32), 8948)		\
	X("too small ones: the MSS",					\
	  mssfrac_unscaled_segment(949, 1898, 1448, 32), 1448)	\
	X("a window of one MSS: the MSS",				\
	  mssfrac_unscaled_segment(4474, 8948, 8948, 32), 8948)

#define WINDOW_RECEIVER(X)						\
	X("receiver advertises the remainder in steps of MSS/8",	\
	  mssfrac_offer(17896, 26052, 17896, 8948, 8, 16),		\
	  17896 + 7 * (8948 / 8))					\
	X("receiver keeps full-sized segments it can advertise",	\
	  mssfrac_offer(8948, 17896, 17792, 8948, 64, 16), 17896)	\
	X("receiver keeps a window until another step fits",		\
	  mssfrac_offer(17896, 26052, 26000, 8948, 64, 16), 26000)	\
	X("receiver keeps a closed window closed",			\
	  mssfrac_offer(0, 26052, 0, 8948, 64, 16), 0)			\
	X("receiver leaves many segments alone",			\
	  mssfrac_offer(1 << 19, 1 << 20, 0, 1448, 64, 16), 1 << 19)	\
	X("no window is raised that full-sized segments fill",		\
	  mssfrac_worth_raising(23704, 5698, 32), false)		\
	X("but one that they do not fill",				\
	  mssfrac_worth_raising(26000, 5698, 32), true)			\
	X("also of seg_max segments, and a remainder",			\
	  mssfrac_worth_raising(12 * 1000 + 800, 1000, 12), true)	\
	X("but not of a segment more",					\
	  mssfrac_worth_raising(13 * 1000 + 800, 1000, 12), false)	\
	X("nor where the size of a segment is unknown",		\
	  mssfrac_worth_raising(26000, 0, 32), false)			\
	X("rx_frac 0 is off",						\
	  mssfrac_offer(17896, 26052, 17896, 8948, 0, 16), 17896)	\
	/* 3 x 8960 = 26,880 and 43 steps of 140 in 6,120. */		\
	X("33,000 B by 8960 are advertised as 26,880 + 43 x 140",	\
	  mssfrac_offer(26844, 33000, 0, 8960, 64, 16), 32900)		\
	/* 3 x 8948 = 26,844 and 44 steps of 139 in 6,156. */		\
	X("33,000 B by 8948 are advertised as 26,844 + 44 x 139",	\
	  mssfrac_offer(26844, 33000, 0, 8948, 64, 16), 32960)

/* rx_mss_est: one interval.  MTU 9000, timestamps: 8948 bytes; none: 8960. */
#define WINDOW_SEEN(X)							\
	X("a sender leaving out 12 bytes of options is seen as 8960",	\
	  mssfrac_segment_seen(2 * 8960, 2, 8948), 8960)		\
	X("a short segment among three lowers the mean",		\
	  mssfrac_segment_seen(2 * 8948 + 5, 3, 8948), 5967)		\
	X("nothing is above the MSS advertised and 40 bytes",		\
	  mssfrac_segment_seen(62000, 1, 8948), 8988)			\
	X("a segment of exactly that size is seen as it is",		\
	  mssfrac_segment_seen(8988, 1, 8948), 8988)			\
	X("a short segment is seen as it is",				\
	  mssfrac_segment_seen(1, 1, 8948), 1)				\
	X("an interval without a segment shows nothing",		\
	  mssfrac_segment_seen(0, 0, 8948), 0)

/* tx_steady: from MSS to the goal by MSS/N. */
#define WINDOW_STEPS(X)							\
	X("the first step down is MSS/64",				\
	  mssfrac_steady_step(8948, 6513, 8948, 64), 8948 - 139)	\
	X("the last step ends at the goal",				\
	  mssfrac_steady_step(6600, 6513, 8948, 64), 6513)		\
	X("so does a step that reaches it exactly",			\
	  mssfrac_steady_step(6513 + 139, 6513, 8948, 64), 6513)	\
	X("a step ends one byte above the goal",			\
	  mssfrac_steady_step(6513 + 140, 6513, 8948, 64), 6514)	\
	X("at the goal is the goal",					\
	  mssfrac_steady_step(6513, 6513, 8948, 64), 6513)		\
	X("below the goal is the goal",					\
	  mssfrac_steady_step(6000, 6513, 8948, 64), 6513)		\
	X("a step of MSS/1 is the goal at once",			\
	  mssfrac_steady_step(8948, 6513, 8948, 1), 6513)		\
	X("8948 to 6513 by 139 takes 18 steps", window_steps_down(), 18)

static inline u32 window_steps_down(void)
{
	u32 seg = 8948, n = 0;

	for (; seg > 6513 && n < 100; n++)
		seg = mssfrac_steady_step(seg, 6513, 8948, 64);
	return n;
}

/* Arguments of a property, drawn at random; each property reads its own. */
struct window_args {
	u32 window, mss, half, frac, seg_max, stock, current_offer;
};

#define WINDOW_ARGS "window %u mss %u half %u frac %u seg_max %u stock %u current %u"
#define WINDOW_ARGS_OF(a) (a)->window, (a)->mss, (a)->half, (a)->frac,	\
			  (a)->seg_max, (a)->stock, (a)->current_offer

/* xorshift32: the same arguments in every run. */
static inline u32 window_random(u32 limit)
{
	static u32 x = 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x % limit;
}

static inline void window_draw(struct window_args *a)
{
	a->window = window_random(1u << (1 + window_random(30)));
	a->mss = 88 + window_random(65448);
	a->half = 8192 + window_random(1u << 16);
	a->frac = window_random(65);
	a->seg_max = 2 + window_random(255);
	a->stock = 0;
	a->current_offer = 0;
}

/* Windows of the size that a GSO skb or two hold. */
static inline void window_draw_paired(struct window_args *a)
{
	window_draw(a);
	a->window = window_random(1u << (1 + window_random(22)));
}

static inline void window_draw_offer(struct window_args *a)
{
	window_draw(a);
	a->window = window_random(1u << 16);
	a->stock = window_random(4) ? mssfrac_whole_segments(a->window, a->mss) :
				      window_random(1u << 16);
	a->current_offer = window_random(1u << 16);
	a->seg_max = 16;
}

static inline bool window_segment_holds(const struct window_args *a)
{
	u32 seg = mssfrac_segment(a->window, a->mss, a->frac, a->seg_max);
	u32 count;

	if (seg > a->mss || (seg < MSSFRAC_MIN_SEG && seg != a->mss))
		return false;
	if (seg == a->mss)
		return true;
	count = a->window / seg;
	/* Fills: what is left is less than two bytes a segment. */
	if (a->window - count * seg >= 2 * count)
		return false;
	/* Halves are whole bytes. */
	if (count & 1 || seg & 1)
		return false;
	/* No worse than full-sized segments, two bytes a segment apart. */
	return count * seg + 2 * count >=
	       mssfrac_whole_segments(a->window, a->mss);
}

/* Two to a GSO skb, not three, an even count, all of the window. */
static inline bool window_paired_holds(const struct window_args *a)
{
	u32 seg = mssfrac_paired_segment(a->window, a->mss, a->half, a->frac,
					 a->seg_max);

	if (a->mss <= a->half || a->window / 4 < a->half)
		return seg == mssfrac_segment(a->window, a->mss, a->frac,
					      a->seg_max);
	if (!a->frac || a->window / a->mss +
	    (a->window % a->mss >= a->mss / a->frac) > a->seg_max) {
		if (seg == a->mss)
			return true;
	}
	return seg <= a->half && 3 * (seg + 2) > 2 * a->half &&
	       !(a->window / seg & 1) &&
	       a->window % seg < 2 * (a->window / seg);
}

static inline bool window_offer_holds(const struct window_args *a)
{
	u32 offer = mssfrac_offer(a->stock, a->window, a->current_offer, a->mss,
				  a->frac, a->seg_max);

	/* Never below the kernel's window, never beyond the space. */
	if (offer < a->stock || (offer > a->window && offer != a->stock))
		return false;
	if (!a->stock && offer)
		return false;
	/* Once advertised, the same space leads to the same window. */
	return offer == a->stock ||
	       mssfrac_offer(a->stock, a->window, offer, a->mss, a->frac,
			     a->seg_max) == offer;
}

static const struct window_property {
	const char *name;
	void (*draw)(struct window_args *args);
	bool (*holds)(const struct window_args *args);
} window_properties[] = {
	{ "sender: random windows keep the invariants",
	  window_draw, window_segment_holds },
	{ "sender: so do pairs of segments in random GSO skbs",
	  window_draw_paired, window_paired_holds },
	{ "receiver: random windows keep the invariants",
	  window_draw_offer, window_offer_holds },
};

#endif /* WINDOW_CASES_H */
