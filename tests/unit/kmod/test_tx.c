// SPDX-License-Identifier: GPL-2.0-only
/*
 * When the sender's policy (kmod/tx.c) chooses a size and gives it up, in user
 * space: the very files, on a socket of kernel.h,
 * whose round trips this test makes up.  What a round trip delivers, by which
 * size, is the whole of the world here; so each rule is seen alone, and to the
 * round trip.
 */
#include <stdio.h>
#include <string.h>

/* Tracepoints: the last reason is kept. */
#define MSSFRAC_TRACE_H
#define trace_align(sk, conn, window, acked, why)	\
	((void)(sk), (void)(window), (void)(acked), last_why = (why))
static int last_why;

#include "../../../kmod/rounds.c"
#include "../../../kmod/tx.c"

#include "one_connection.h"

/* --- The path ------------------------------------------------------------- */

#define MSS	8948
#define WINDOW	26052	/* two MSS and a rest: four segments of 6512 */
#define WHOLE	(2 * MSS)

/* Bytes a round trip delivers in stock segments, and in ours. */
static u32 stock_bytes, own_bytes;
static u32 window, own_window;
static u32 given;	/* the size for what is sent next */
static u32 backlog;	/* bytes that wait in the send buffer */
static struct sk_buff head;	/* of the send queue */
static bool limited;

/* One round trip; why the state moved at its end. */
static int round_trip(void)
{
	bool own = conn->policy->tx.seg;

	/* All that was in flight is acknowledged, */
	tcp.snd_una = tcp.snd_nxt;
	tcp.snd_wnd = own ? own_window : window;
	tcp.chrono_type = limited ? TCP_CHRONO_RWND_LIMITED : TCP_CHRONO_BUSY;
	last_why = MSSFRAC_WHY_ROUND;
	given = mssfrac_tx_mss(sk, tcp.mss_cache);
	/* and the next window goes out. */
	tcp.snd_nxt += conn->policy->tx.seg ? own_bytes : stock_bytes;
	tcp.write_seq = tcp.snd_nxt + backlog;
	mssfrac_tx_mss(sk, tcp.mss_cache);
	return last_why;
}

/* A connection with a window of @bytes, in segments of @mss; both arms equal. */
static void connect(u32 mss, u32 bytes)
{
	memset(room, 0, sizeof(room));
	memset(&mn, 0, sizeof(mn));
	memset(&tcp, 0, sizeof(tcp));
	mn.set.tx_frac = 64;
	mn.set.seg_max = 32;
	conn->sk = sk;
	conn->mn = &mn;
	conn->arm = MSSFRAC_TREATED;
	tcp.mss_cache = mss;
	tcp.snd_cwnd = 100;
	tcp.max_window = 1 << 20;
	tcp.rx_opt.snd_wscale = 7;
	tcp.snd_una = tcp.snd_nxt = 0xffff0000;	/* it wraps soon */
	head.end_seq = tcp.snd_una + (1 << 24);
	sk->send_head = &head;
	limited = true;
	backlog = 0;
	window = own_window = bytes;
	stock_bytes = own_bytes = mssfrac_whole_segments(bytes, mss);
	mssfrac_tx_mss(sk, mss);
	/* The first round trip has no beginning, slow start limits the next. */
	limited = false;
	round_trip();
	round_trip();
	limited = true;
}

/* Loopback: 6.2 segments, a transmit chunk is one; @cwnd segments. */
static void connect_loopback(u32 cwnd)
{
	connect(65483, 405995);
	sk->can_gso = true;
	sk->sk_gso_max_size = 65215;
	stock_bytes = 4 * 65483;
	tcp.snd_cwnd = cwnd;
}

/* Stock's next round trips: '+' sends the whole window, '-' full-sized segments. */
static void sends(const char *round)
{
	for (; *round; round++) {
		stock_bytes = *round == '+' ? WINDOW : WHOLE;
		round_trip();
	}
}

/* Round trips until @why; @most + 1: it did not come. */
static int until(int why, int most)
{
	int n;

	for (n = 1; n <= most; n++)
		if (round_trip() == why)
			return n;
	return n;
}

/* --- Cases ---------------------------------------------------------------- */

static int cases, failures;

static void check(const char *name, bool ok)
{
	printf("%sok %d %s\n", ok ? "" : "not ", ++cases, name);
	failures += !ok;
}

/* @got, an expression, is from @least to @most; says what it was. */
static bool within(int got, int least, int most)
{
	if (got < least || got > most)
		printf("# %d, not %d to %d\n", got, least, most);
	return got >= least && got <= most;
}

/* Until a size is chosen, in a window that it then fills. */
static int choose(u32 mss, u32 bytes)
{
	connect(mss, bytes);
	own_bytes = bytes;
	return until(MSSFRAC_WHY_SIZED, 100);
}

static void sizes(void)
{
	check("a size after two whole round trips that left a part of the window",
	      within(choose(MSS, WINDOW), 3, 3) &&
	      within(conn->policy->tx.seg, 6512, 6512) && given == 6512);
	check("it stays as long as the window does",
	      until(MSSFRAC_WHY_REVERTED, 5000) > 5000 &&
	      within(conn->policy->tx.seg, 6512, 6512));

	choose(MSS, WINDOW);
	own_window = own_bytes = WINDOW - 800;
	round_trip();
	round_trip();
	check("the size follows the window down", within(conn->policy->tx.seg, 6312, 6312));
	own_window = own_bytes = WINDOW - 400;
	round_trip();
	round_trip();
	check("not up by less than MSS/64", within(conn->policy->tx.seg, 6312, 6312));
	own_window = own_bytes = WINDOW;
	round_trip();
	round_trip();
	check("up by more", within(conn->policy->tx.seg, 6512, 6512));
	own_window = own_bytes = 4 * MSS;
	check("and is given up where full-sized segments fill it",
	      within(until(MSSFRAC_WHY_MOVED, 100), 1, 2) && !conn->policy->tx.seg);

	choose(MSS, WINDOW);
	tcp.mss_cache = MSS - 500;
	check("a new path MTU ends all of it",
	      mssfrac_tx_mss(sk, MSS - 500) == MSS - 500 &&
	      last_why == MSSFRAC_WHY_MSS && !conn->policy->tx.seg &&
	      !conn->limited && !conn->rounds.window);
	choose(MSS, WINDOW);
	tcp.inet_conn.icsk_pmtu_cookie++;
	check("also one that leaves the MSS as it is",
	      mssfrac_tx_mss(sk, MSS) == MSS && !conn->policy->tx.seg);
	choose(MSS, WINDOW);
	tcp.inet_conn.icsk_ca_state = TCP_CA_Recovery;
	check("recovery sends the same size",
	      mssfrac_tx_mss(sk, MSS) == 6512);
	tcp.inet_conn.icsk_ca_state = TCP_CA_Open;
	mn.set.tx_frac = 0;
	check("and off is off at once", mssfrac_tx_mss(sk, MSS) == MSS);
}

static void conditions(void)
{
	connect(MSS, 2 * WHOLE);
	check("no size where full-sized segments fill the window",
	      until(MSSFRAC_WHY_SIZED, 300) > 300);
	connect(MSS, WINDOW);
	stock_bytes = WINDOW - MSS / 64 + 1;
	check("nor where remainders between them do",
	      until(MSSFRAC_WHY_SIZED, 300) > 300);
	connect(MSS, WINDOW);
	stock_bytes = WINDOW - WINDOW / 24;
	check("nor where they leave 1/24 of it unused",
	      until(MSSFRAC_WHY_SIZED, 300) > 300);
	connect(MSS, WINDOW);
	stock_bytes = WINDOW - WINDOW / 24 - 1;
	check("but where they leave more", until(MSSFRAC_WHY_SIZED, 300) <= 3);
	connect(MSS, WINDOW);
	mn.set.tx_frac = 2;
	stock_bytes = WINDOW - MSS / 2 + 1;
	check("unless that is less than a step of MSS/N",
	      until(MSSFRAC_WHY_SIZED, 300) > 300);
	connect(MSS, WINDOW);
	stock_bytes = WINDOW;
	until(MSSFRAC_WHY_SIZED, 10);
	sends("-+");
	stock_bytes = WHOLE;
	check("but where they do in every second round trip",
	      within(until(MSSFRAC_WHY_SIZED, 300), 2, 2));
	connect(MSS, WINDOW);
	sends("+++-++");
	stock_bytes = WHOLE;
	check("or in two of three", within(until(MSSFRAC_WHY_SIZED, 300), 2, 2));
	connect(MSS, WINDOW);
	stock_bytes = WINDOW + 1;
	check("but where a round trip brought more than the window",
	      until(MSSFRAC_WHY_SIZED, 300) <= 3);
	connect(MSS, WINDOW);
	stock_bytes = 2 * WINDOW;
	check("nor where it brought two of them",
	      until(MSSFRAC_WHY_SIZED, 300) > 300);
	connect(MSS, WINDOW);
	tcp.snd_cwnd = 2;
	check("nor where the congestion window would make it worth less than stock",
	      until(MSSFRAC_WHY_SIZED, 300) > 300);
	tcp.snd_cwnd = 3;
	check("one segment more, and it would not",
	      until(MSSFRAC_WHY_SIZED, 300) <= 2);
	connect(MSS, 23652);	/* three of four segments: 17736 of 17896 bytes */
	tcp.snd_cwnd = 3;
	check("nor would a step of MSS/N per segment less",
	      until(MSSFRAC_WHY_SIZED, 300) <= 3);
	connect(MSS, 23400);	/* 17550 */
	tcp.snd_cwnd = 3;
	check("but more than that would", until(MSSFRAC_WHY_SIZED, 300) > 300);
	connect(MSS, WINDOW);
	limited = false;
	check("nor where the window is not the limit",
	      until(MSSFRAC_WHY_SIZED, 300) > 300);
	connect(MSS, WINDOW);
	conn->arm = MSSFRAC_STOCK;
	check("nor in the stock arm", until(MSSFRAC_WHY_SIZED, 300) > 300);
	connect(MSS, 33 * MSS);
	check("nor in a window of more segments than asked for",
	      until(MSSFRAC_WHY_SIZED, 300) > 300);
	connect(MSS, WINDOW);
	sends("+++-");
	stock_bytes = WINDOW;
	check("nor after one such round trip",
	      until(MSSFRAC_WHY_SIZED, 100) > 100);
	connect(MSS, WINDOW);
	round_trip();
	round_trip();
	limited = false;
	round_trip();
	limited = true;
	check("nor after two if another limit lies between",
	      round_trip() != MSSFRAC_WHY_SIZED &&
	      round_trip() != MSSFRAC_WHY_SIZED);
	check("but after two since then", round_trip() == MSSFRAC_WHY_SIZED);
}

/* A connection that the window limits in part of its round trips. */
static void beginnings(void)
{
	bool sized = false;

	connect(MSS, WINDOW);
	for (int i = 0; i < 100; i++) {
		limited = i & 1;
		sized = sized || round_trip() == MSSFRAC_WHY_SIZED;
	}
	check("none counts that began with another limit", !sized);

	/* The first window is of the handshake, before the reader falls behind. */
	connect(MSS, 2 * WINDOW);
	limited = false;
	round_trip();
	limited = true;
	window = own_window = own_bytes = WINDOW;
	stock_bytes = WHOLE;
	until(MSSFRAC_WHY_SIZED, 100);
	check("nor its window, which our segments need not be worth",
	      until(MSSFRAC_WHY_REVERTED, 300) > 300 && conn->policy->tx.seg);

	connect(MSS, 2 * WINDOW);
	stock_bytes = 2 * WINDOW;
	for (int i = 0; i < 3; i++)
		round_trip();
	limited = false;
	window = own_window = own_bytes = WINDOW;
	stock_bytes = WHOLE;
	round_trip();
	limited = true;
	until(MSSFRAC_WHY_SIZED, 100);
	check("nor one from before another limit",
	      until(MSSFRAC_WHY_REVERTED, 300) > 300 && conn->policy->tx.seg);

	choose(MSS, WINDOW);
	own_bytes = 3 * 6512;
	for (int i = 0; i < 100; i++) {
		limited = i & 1;
		sized = sized || round_trip() == MSSFRAC_WHY_NUDGE;
	}
	check("and none is missing a segment", !sized && conn->policy->tx.seg);
	choose(MSS, WINDOW);
	limited = false;
	own_window = WINDOW - 800;
	round_trip();
	limited = true;
	round_trip();
	check("nor is the size too large, until the next",
	      within(conn->policy->tx.seg, 6512, 6512) &&
	      round_trip() == MSSFRAC_WHY_STEP);
}

/* The window follows our segments down, to what stock used of it. */
static void guards(void)
{
	int n, last = 0;
	bool doubled = true;

	choose(MSS, WINDOW);
	own_window = own_bytes = WHOLE + 1;
	check("a smaller window that is worth more than stock's is kept",
	      until(MSSFRAC_WHY_REVERTED, 300) > 300);
	own_window = own_bytes = WHOLE;
	check("one that is not is given up after two round trips",
	      within(until(MSSFRAC_WHY_REVERTED, 100), 2, 3) && !conn->policy->tx.seg);
	own_window = own_bytes = WINDOW;
	round_trip();
	choose(MSS, WINDOW);
	own_window = own_bytes = WHOLE;
	round_trip();
	own_window = own_bytes = WINDOW;
	round_trip();
	own_window = own_bytes = WHOLE;
	check("not after one of two", round_trip() != MSSFRAC_WHY_REVERTED &&
	      round_trip() != MSSFRAC_WHY_REVERTED);

	choose(MSS, WINDOW);
	own_window = own_bytes = WHOLE;
	until(MSSFRAC_WHY_REVERTED, 100);
	for (int i = 0; i < 8; i++) {
		n = until(MSSFRAC_WHY_SIZED, 1000);
		doubled = doubled && (!last || n > 3 * last / 2) && n < 600;
		last = n;
		until(MSSFRAC_WHY_REVERTED, 100);
	}
	check("each attempt waits twice as long", doubled && last > 250);
	own_window = own_bytes = WINDOW;
	until(MSSFRAC_WHY_SIZED, 1000);
	for (n = 0; n < 2000; n++)
		round_trip();
	own_window = own_bytes = WHOLE;
	until(MSSFRAC_WHY_REVERTED, 100);
	check("and a size that held for long forgives",
	      within(until(MSSFRAC_WHY_SIZED, 1000), 2, 5));

	choose(MSS, WINDOW);
	limited = false;
	round_trip();
	check("a round trip with another limit ends no size",
	      within(conn->policy->tx.seg, 6512, 6512));
	own_window = WHOLE;
	for (int i = 0; i < 100; i++)
		round_trip();
	check("nor one in a window that full-sized segments fill, but smaller",
	      within(conn->policy->tx.seg, 6512, 6512));
	own_window = 4 * MSS;
	round_trip();
	round_trip();
	check("but one in a window that has grown", !conn->policy->tx.seg);
	choose(MSS, 33108);
	tcp.snd_cwnd = 4;
	limited = false;
	own_window = 49808;	/* six segments of 8300; stock sends four of MSS */
	round_trip();
	round_trip();
	check("and not the congestion window", !conn->policy->tx.seg);
	choose(MSS, WINDOW);
	tcp.snd_cwnd = 2;
	check("nor does a congestion window that becomes the limit",
	      until(MSSFRAC_WHY_MOVED, 100) > 100);
	limited = false;
	round_trip();
	check("with the peer's window no limit either",
	      within(conn->policy->tx.seg, 6512, 6512));
}

static void unscaled(void)
{
	connect(MSS, MSS + MSS / 2);
	tcp.rx_opt.snd_wscale = 0;
	until(MSSFRAC_WHY_SIZED, 100);
	check("without window scaling a full-sized segment fits beside any other",
	      within(conn->policy->tx.seg, 3354, 3356));
	connect(MSS, MSS + MSS / 32);
	tcp.rx_opt.snd_wscale = 0;
	check("and none is chosen where that takes too many",
	      until(MSSFRAC_WHY_SIZED, 100) > 100);
}

static void nudges(void)
{
	choose(MSS, WINDOW);
	own_bytes = 3 * 6512;
	check("where a segment a round trip is missing twice, a nudge",
	      within(until(MSSFRAC_WHY_NUDGE, 100), 2, 3));
	check("what is sent next goes in halves, once",
	      within(given, 3256, 3256) &&
	      within(mssfrac_tx_mss(sk, MSS), 6512, 6512));
	check("the next one comes twice as late",
	      within(until(MSSFRAC_WHY_NUDGE, 100), 2, 4) &&
	      within(until(MSSFRAC_WHY_NUDGE, 100), 4, 6));
	own_bytes = WINDOW;
	check("none where all of the window is used",
	      until(MSSFRAC_WHY_NUDGE, 300) > 300);
	own_bytes = 2 * 6512;
	check("nor where more is missing",
	      until(MSSFRAC_WHY_NUDGE, 300) > 300);
	choose(MSS, WINDOW);
	own_bytes = 6 * 6512;
	check("six of eight segments are three of four in each of two round trips",
	      within(until(MSSFRAC_WHY_NUDGE, 100), 2, 3));
}

/* Nudged for nothing: nudges until the size is given up; @n counts round trips. */
static int in_vain(int *n)
{
	int count = 0;

	for (*n = 1; *n < 1000; ++*n) {
		int why = round_trip();

		if (why == MSSFRAC_WHY_REVERTED)
			return count;
		count += why == MSSFRAC_WHY_NUDGE;
	}
	return -count;
}

static void stuck(void)
{
	int n, first;

	choose(MSS, WINDOW);
	own_bytes = 3 * 6512;
	check("three of four segments are kept where stock sends less",
	      until(MSSFRAC_WHY_REVERTED, 1000) > 1000);
	choose(MSS, 33108);
	own_bytes = 3 * 8276;
	check("where it sends more, stock after a nudge",
	      within(in_vain(&n), 1, 1) && within(n, 4, 6) && !conn->policy->tx.seg);
	check("and a size again, but later",
	      within(until(MSSFRAC_WHY_SIZED, 100), 4, 5));
	in_vain(&n);
	check("later each time",
	      within(until(MSSFRAC_WHY_SIZED, 100), 8, 9));

	choose(MSS, 33108);
	own_bytes = 3 * 8276;
	backlog = 10 * own_bytes;
	check("what is queued, and cut for stock, is sent first: 16 round trips",
	      within(in_vain(&first), 4, 4) && within(first, 30, 40));
	check("stock's own is as well", within(until(MSSFRAC_WHY_SIZED, 100), 32, 33));
	check("the next size is judged when it is sent",
	      within(in_vain(&n), 0, 0) && within(n, 10, 12));

	choose(MSS, WINDOW);
	own_window = 0;
	for (n = 0; n < 3; n++)
		round_trip();
	check("bytes acknowledged with a window of zero are no share of it",
	      !conn->policy->tx.seg);
}

static void pairs(void)
{
	connect_loopback(15);
	check("a chunk that holds one segment gets two",
	      within(until(MSSFRAC_WHY_SIZED, 100), 3, 3) &&
	      within(conn->policy->tx.seg, 28998, 28998));
	connect_loopback(14);
	check("larger ones where the congestion window is short of segments",
	      within(until(MSSFRAC_WHY_SIZED, 100), 3, 3) &&
	      within(conn->policy->tx.seg, 31230, 31230));
	own_bytes = 13 * 31230;
	check("and they stay larger",
	      until(MSSFRAC_WHY_STEP, 100) > 100 &&
	      within(conn->policy->tx.seg, 31230, 31230));
	tcp.snd_cwnd = 12;
	round_trip();
	round_trip();
	check("and become as large as two in a chunk where it is shorter still",
	      within(conn->policy->tx.seg, 32606, 32606));
	tcp.snd_cwnd = 2;
	tcp.max_window = own_window = own_bytes = 34 * 65483;
	check("and none any more in a window of more segments than asked for",
	      within(until(MSSFRAC_WHY_MOVED, 100), 1, 2));
	connect_loopback(13);
	check("and none where a chunk would not hold two of them",
	      until(MSSFRAC_WHY_SIZED, 300) > 300);
}

static void steps(void)
{
	connect(MSS, WINDOW);
	mn.set.tx_steady = 1;
	own_bytes = WINDOW;
	until(MSSFRAC_WHY_SIZED, 100);
	check("step by step: the first size is MSS/64 below",
	      within(conn->policy->tx.seg, 8809, 8809));
	check("the next one a round trip later",
	      within(until(MSSFRAC_WHY_STEP, 100), 1, 1) &&
	      within(conn->policy->tx.seg, 8670, 8670));
	for (int i = 0; i < 100; i++)
		round_trip();
	check("down to the wanted one", within(conn->policy->tx.seg, 6512, 6512));
	connect_loopback(15);
	mn.set.tx_steady = 1;
	own_bytes = 405995;
	until(MSSFRAC_WHY_SIZED, 100);
	check("where a chunk holds one segment, from half a chunk down",
	      within(conn->policy->tx.seg, 32607 - 1023, 32607 - 1023));
}

static void stalls(void)
{
	connect(MSS, WINDOW);
	tcp.snd_wnd = 4000;
	check("below one MSS the first wait is the kernel's",
	      mssfrac_tx_mss(sk, MSS) == MSS);
	tcp.inet_conn.icsk_pending = ICSK_TIME_PROBE0;
	check("while its timer runs", mssfrac_tx_mss(sk, MSS) == MSS);
	tcp.inet_conn.icsk_pending = 0;
	check("when it has run out, one segment fills the window",
	      mssfrac_tx_mss(sk, MSS) == 4000);
	conn->policy->tx.seg = 6512;
	check("and is the size that is shown, if there is another one, too",
	      mssfrac_tx_size(conn) == 4000);
	conn->policy->tx.seg = 0;
	tcp.packets_out = 1;
	tcp.snd_wnd = 3000;
	check("the size stays while the window shrinks between two reads",
	      mssfrac_tx_mss(sk, MSS) == 4000);
	tcp.packets_out = 0;
	check("and follows it where it would wait again",
	      mssfrac_tx_mss(sk, MSS) == 3000);
	tcp.packets_out = 1;
	tcp.snd_wnd = 4000;
	check("and back", mssfrac_tx_mss(sk, MSS) == 4000);
	tcp.snd_wnd = MSS;
	check("a whole segment is the kernel's again",
	      mssfrac_tx_mss(sk, MSS) == MSS);
	tcp.packets_out = 0;
	tcp.snd_wnd = 4000;
	check("it does not wait a second time", mssfrac_tx_mss(sk, MSS) == 4000);

	/* A closed window: its timer stops when one opens that holds the record. */
	connect(MSS, WINDOW);
	tcp.snd_wnd = 0;
	head.end_seq = tcp.snd_una + 2000;
	tcp.inet_conn.icsk_pending = ICSK_TIME_PROBE0;
	mssfrac_tx_mss(sk, MSS);
	tcp.inet_conn.icsk_pending = 0;
	tcp.snd_wnd = 4000;
	mssfrac_tx_mss(sk, MSS);
	head.end_seq = tcp.snd_una + 20000;
	tcp.packets_out = 1;
	check("what the window holds has not waited for the timer",
	      mssfrac_tx_mss(sk, MSS) == MSS);

	/* A record that the window holds, acknowledged, and one that it does not. */
	connect(MSS, WINDOW);
	tcp.snd_wnd = 4000;
	head.end_seq = tcp.snd_una + 2000;
	mssfrac_tx_mss(sk, MSS);
	head.end_seq = tcp.snd_una + 20000;
	check("nor does one record answer for the next",
	      mssfrac_tx_mss(sk, MSS) == MSS);
}

/* A socket is left alone, in repair mode for example, and then no longer. */
static void left_alone(void)
{
	u64 used;

	choose(MSS, WINDOW);
	used = conn->count.tx_bytes_used.v;
	tcp.repair = true;
	tcp.snd_una = tcp.snd_nxt += 10 * WINDOW;
	check("a socket that is left alone gets stock segments",
	      mssfrac_tx_mss(sk, MSS) == MSS);
	tcp.repair = false;
	round_trip();
	round_trip();
	check("what it sent meanwhile belongs to no round trip",
	      conn->count.tx_bytes_used.v <= used + 2 * WINDOW);
}

/* What is counted, and kept, without a policy. */
static void watches(void)
{
	connect(MSS, WINDOW);
	conn->arm = MSSFRAC_STOCK;
	memset(&conn->count, 0, sizeof(conn->count));
	for (int i = 0; i < 10; i++)
		round_trip();
	check("each round trip that the window limits is counted, in stock too",
	      conn->count.tx_rounds.v == 10 &&
	      conn->count.tx_bytes_used.v == 10 * WHOLE &&
	      conn->count.tx_bytes_lost.v == 10 * (WINDOW - WHOLE));

	memset(room, 0, sizeof(room));
	conn->sk = sk;
	conn->mn = &mn;
	conn->arm = MSSFRAC_TREATED;
	mn.set.tx_frac = 0;
	for (int i = 0; i < 10; i++)
		round_trip();
	check("nothing more is kept while the policy is off",
	      conn->count.tx_rounds.v && !conn->extended);
	mn.set.tx_frac = 64;
	no_memory = true;
	check("without memory the connection stays stock",
	      until(MSSFRAC_WHY_SIZED, 100) > 100 && !conn->extended &&
	      given == MSS);
	no_memory = false;
	check("and with it, it is treated after three round trips, as a new one",
	      round_trip() == MSSFRAC_WHY_MSS && conn->extended &&
	      within(until(MSSFRAC_WHY_SIZED, 100), 3, 3));
	mn.set.tx_frac = 0;
	round_trip();
	check("what was chosen ends with the policy",
	      !conn->policy->tx.seg && given == MSS);
}

/* What the owner of a network namespace can set. */
static void hostile(void)
{
	u32 least = UINT32_MAX;

	connect(MSS, UINT32_MAX);
	tcp.max_window = UINT32_MAX;
	stock_bytes = WHOLE;
	for (int i = 0; i < 10; i++)
		round_trip();
	check("a window of 2^32 - 1 (TCP_REPAIR_WINDOW) is left to stock",
	      given == MSS);

	connect_loopback(100);
	until(MSSFRAC_WHY_SIZED, 20);
	sk->sk_gso_max_size = 4;
	tcp.snd_cwnd = 4;
	for (int i = 0; i < 10; i++) {
		round_trip();
		least = min(least, given);
	}
	check("GSO skbs of a few bytes (gso_max_size) make no tiny segment",
	      least >= MSSFRAC_MIN_SEG);
}

int main(void)
{
	printf("KTAP version 1\n1..91\n");
	sizes();
	conditions();
	beginnings();
	guards();
	unscaled();
	nudges();
	stuck();
	pairs();
	steps();
	stalls();
	left_alone();
	watches();
	hostile();
	return failures || cases != 91;
}
