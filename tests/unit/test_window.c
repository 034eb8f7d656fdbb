// SPDX-License-Identifier: GPL-2.0
/*
 * Window arithmetic of kmod/window.h in user space: the figures of the SC2003
 * paper (section 3.5.1) exactly, then the invariants on random arguments.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef uint32_t u32;
typedef uint64_t u64;

#include "../../kmod/window.h"

static int cases, failures;

#define CASE(name, ok) do {						\
	bool passed = (ok);						\
	printf("%sok %d %s\n", passed ? "" : "not ", ++cases, name);	\
	failures += !passed;						\
} while (0)

static bool is(u32 got, u32 wanted)
{
	if (got != wanted)
		printf("# got %u, wanted %u\n", got, wanted);
	return got == wanted;
}

/* xorshift32: the same arguments in every run. */
static u32 random_below(u32 limit)
{
	static u32 x = 2463534242u;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	return x % limit;
}

/* 33,000 B of space: 26,844 B advertised; 17,920 B of it sent by 8,960. */
static void paper(void)
{
	CASE("33,000 B of space advertise 26,844 B",
	     is(mssfrac_whole_segments(33000, 8948), 26844));
	CASE("26,844 B offered let 17,920 B be sent",
	     is(mssfrac_whole_segments(26844, 8960), 17920));
	CASE("26 KB hold 18 KB of 9 KB segments",
	     is(mssfrac_whole_segments(26 << 10, 9 << 10), 18 << 10));
	CASE("48 KB ideal hold 5 segments",
	     is(mssfrac_whole_segments(48 << 10, 8948) / 8948, 5));
}

/* What the fractional rules make of the same windows. */
static void chosen(void)
{
	CASE("sender fills 26,052 B with four segments",
	     is(mssfrac_segment(26052, 8948, 64, 16), 6512));
	CASE("sender makes six of five whole segments",
	     is(mssfrac_segment(44740, 8948, 64, 16), 7456));
	CASE("sender leaves two whole segments alone",
	     is(mssfrac_segment(17896, 8948, 64, 16), 8948));
	CASE("sender halves a window below one segment",
	     is(mssfrac_segment(8192, 65483, 64, 16), 4096));
	CASE("sender sends a window below two minimal segments whole",
	     is(mssfrac_segment(1000, 8948, 64, 16), 1000));
	CASE("sender leaves a silly window to the kernel",
	     is(mssfrac_segment(535, 8948, 64, 16), 8948));
	CASE("sender leaves many segments alone",
	     is(mssfrac_segment(1 << 20, 8948, 64, 16), 8948));
	CASE("a coarse step leaves a small rest alone",
	     is(mssfrac_segment(2 * 8948 + 1000, 8948, 8, 16), 8948));
	/* Loopback: MSS 65483, of which a chunk of 65215 bytes holds less than one. */
	CASE("sender makes fourteen halves of 6.2 segments over loopback",
	     is(mssfrac_paired_segment(405995, 65483, 32607, 64, 16), 28998));
	CASE("where a chunk holds two segments they are not halved",
	     is(mssfrac_paired_segment(44740, 8948, 32607, 64, 16), 7456));
	CASE("less than two chunks are not halved",
	     is(mssfrac_paired_segment(124417, 65483, 32607, 64, 16), 62208));
	CASE("nor are more segments than asked for",
	     is(mssfrac_paired_segment(16 * 65483, 65483, 32607, 64, 16), 30814) &&
	     is(mssfrac_paired_segment(16 * 65483 + 1023, 65483, 32607, 64, 16),
		65483));
	CASE("off is off",
	     is(mssfrac_segment(26052, 8948, 0, 16), 8948) &&
	     is(mssfrac_offer(17896, 26052, 17896, 8948, 0, 16), 17896));
	CASE("receiver offers the rest in steps of MSS/8",
	     is(mssfrac_offer(17896, 26052, 17896, 8948, 8, 16),
		17896 + 7 * (8948 / 8)));
	CASE("receiver keeps whole segments it can offer",
	     is(mssfrac_offer(8948, 17896, 17792, 8948, 64, 16), 17896));
	CASE("receiver keeps an offer until a step more fits",
	     is(mssfrac_offer(17896, 26052, 26000, 8948, 64, 16), 26000));
	CASE("receiver keeps a closed window closed",
	     is(mssfrac_offer(0, 26052, 0, 8948, 64, 16), 0));
	CASE("receiver leaves many segments alone",
	     is(mssfrac_offer(1 << 19, 1 << 20, 0, 1448, 64, 16), 1 << 19));
}

/* rx_mss_est: what one packet tells.  MTU 9000, timestamps: 8948; none: 8960. */
static void seen(void)
{
	CASE("a sender leaving out 12 bytes of options is seen as 8960",
	     is(mssfrac_segment_seen(8960, 0, 8948), 8960));
	CASE("a merged packet counts by its segments",
	     is(mssfrac_segment_seen(3 * 8948 + 5, 8948, 8948), 8948));
	CASE("nothing is above the MSS advertised and 40 bytes",
	     is(mssfrac_segment_seen(62000, 0, 8948), 8988) &&
	     is(mssfrac_segment_seen(62000, 9001, 8948), 8988) &&
	     is(mssfrac_segment_seen(8988, 0, 8948), 8988));
	CASE("a short segment is seen as it is",
	     is(mssfrac_segment_seen(1, 0, 8948), 1));
	/* 3 x 8960 = 26,880 and 43 steps of 140 in 6,120. */
	CASE("33,000 B by 8960 are offered as 26,880 + 43 x 140",
	     is(mssfrac_offer(26844, 33000, 0, 8960, 64, 16), 32900));
	/* 3 x 8948 = 26,844 and 44 steps of 139 in 6,156. */
	CASE("33,000 B by 8948 are offered as 26,844 + 44 x 139",
	     is(mssfrac_offer(26844, 33000, 0, 8948, 64, 16), 32960));
}

/* tx_steady: from MSS to the goal by MSS/N. */
static void steps(void)
{
	u32 seg = 8948;
	int n = 0;

	CASE("the first step down is MSS/64",
	     is(mssfrac_steady_step(8948, 6513, 8948, 64), 8948 - 139));
	CASE("the last step ends at the goal",
	     is(mssfrac_steady_step(6600, 6513, 8948, 64), 6513) &&
	     is(mssfrac_steady_step(6513 + 139, 6513, 8948, 64), 6513) &&
	     is(mssfrac_steady_step(6513 + 140, 6513, 8948, 64), 6514));
	CASE("at the goal and below it is the goal",
	     is(mssfrac_steady_step(6513, 6513, 8948, 64), 6513) &&
	     is(mssfrac_steady_step(6000, 6513, 8948, 64), 6513));
	CASE("a step of MSS/1 is the goal at once",
	     is(mssfrac_steady_step(8948, 6513, 8948, 1), 6513));
	while (seg > 6513 && ++n < 100)
		seg = mssfrac_steady_step(seg, 6513, 8948, 64);
	CASE("8948 to 6513 by 139 takes 18 steps", is(n, 18));
}

static bool segment_invariants(void)
{
	int i;

	for (i = 0; i < 2000000; i++) {
		u32 window = random_below(1u << (1 + random_below(30)));
		u32 mss = 88 + random_below(65448);
		u32 frac = random_below(65);
		u32 seg_max = 2 + random_below(255);
		u32 seg = mssfrac_segment(window, mss, frac, seg_max);
		u32 count;

		if (seg > mss || (seg < MSSFRAC_MIN_SEG && seg != mss))
			goto broken;
		if (seg == mss)
			continue;
		count = window / seg;
		/* Fills: what is left is less than two bytes a segment. */
		if (window - count * seg >= 2 * count)
			goto broken;
		/* Even, unless one segment is all the window can hold. */
		if (count & 1 && (count > 1 || window >= mss))
			goto broken;
		/* Halves are whole bytes. */
		if (window >= mss && seg & 1)
			goto broken;
		/* No worse than whole segments, two bytes a segment apart. */
		if (count * seg + 2 * count <
		    mssfrac_whole_segments(window, mss))
			goto broken;
		continue;
broken:
		printf("# window %u mss %u frac %u seg_max %u: seg %u\n",
		       window, mss, frac, seg_max, seg);
		return false;
	}
	return true;
}

static bool paired_invariants(void)
{
	int i;

	for (i = 0; i < 2000000; i++) {
		u32 window = random_below(1u << (1 + random_below(22)));
		u32 mss = 88 + random_below(65448);
		u32 half = 8192 + random_below(1u << 16);
		u32 frac = random_below(65);
		u32 seg_max = 2 + random_below(255);
		u32 seg = mssfrac_paired_segment(window, mss, half, frac,
						 seg_max);

		/* Two to a chunk, not three, an even count, all of the window. */
		if (mss > half && window / 4 >= half) {
			if (!frac || window / mss +
			    (window % mss >= mss / frac) > seg_max) {
				if (seg == mss)
					continue;
			}
			if (seg <= half && 3 * (seg + 2) > 2 * half &&
			    !(window / seg & 1) && window % seg < 2 * (window / seg))
				continue;
		} else if (seg == mssfrac_segment(window, mss, frac, seg_max)) {
			continue;
		}
		printf("# window %u mss %u half %u frac %u seg_max %u: seg %u\n",
		       window, mss, half, frac, seg_max, seg);
		return false;
	}
	return true;
}

static bool offer_invariants(void)
{
	int i;

	for (i = 0; i < 2000000; i++) {
		u32 space = random_below(1u << 16);
		u32 mss = 88 + random_below(65448);
		u32 frac = random_below(65);
		u32 stock = random_below(4) ?
			    mssfrac_whole_segments(space, mss) :
			    random_below(1u << 16);
		u32 current_offer = random_below(1u << 16);
		u32 offer = mssfrac_offer(stock, space, current_offer, mss,
					  frac, 16);

		/* Never below the kernel's offer, never beyond the space. */
		if (offer < stock || (offer > space && offer != stock))
			goto broken;
		if (!stock && offer)
			goto broken;
		/* Once offered, the same space leads to the same offer. */
		if (offer != stock &&
		    mssfrac_offer(stock, space, offer, mss, frac, 16) != offer)
			goto broken;
		continue;
broken:
		printf("# space %u mss %u frac %u stock %u current %u: %u\n",
		       space, mss, frac, stock, current_offer, offer);
		return false;
	}
	return true;
}

int main(void)
{
	printf("KTAP version 1\n1..36\n");
	paper();
	chosen();
	seen();
	steps();
	CASE("sender: 2,000,000 random windows keep the invariants",
	     segment_invariants());
	CASE("sender: so do pairs of segments in 2,000,000 random chunks",
	     paired_invariants());
	CASE("receiver: 2,000,000 random offers keep the invariants",
	     offer_invariants());
	return failures || cases != 36;
}
