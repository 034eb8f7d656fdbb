// SPDX-License-Identifier: GPL-2.0-only
/*
 * When the sender's policy (kmod/tx.c, kmod/trial.c) tries a size, keeps it and
 * gives it up, in user space: the very files, on a socket of kernel/net/tcp.h,
 * whose round trips this test makes up.  What a round trip delivers, by which
 * size, is the whole of the world here; so each rule is seen alone, and to the
 * round trip.
 */
#include <stdio.h>
#include <string.h>

/* Tracepoints: the last reason is kept. */
#define MSSFRAC_TRACE_H
#define trace_align(sk, conn, acked, rate, why)	\
	((void)(sk), (void)(acked), (void)(rate), last_why = (why))
static int last_why;

#include "../../kmod/tx.c"
#include "../../kmod/trial.c"

static struct mssfrac_net mn;
static struct mssfrac_conn conn;
static struct tcp_sock tcp;
static struct sock *sk = (struct sock *)&tcp;
static u64 now;

static void *the_namespace(void)
{
	return &mn;
}

static struct mssfrac_conn *the_connection(void)
{
	return &conn;
}

static u64 tcp_clock_us(void)
{
	return now;
}

struct mssfrac_conn *mssfrac_conn_new(const struct sock *sk)
{
	(void)sk;
	return NULL;
}
struct mssfrac_conns mssfrac_conns;
unsigned int mssfrac_net_id;

/* --- The path ------------------------------------------------------------- */

#define MSS	8948
#define WINDOW	26052	/* two MSS and a rest: four segments of 6512 */
#define WHOLE	(2 * MSS)
#define RTT	1000	/* us */

/* Bytes a round trip delivers in stock segments, and in ours. */
static u32 stock_bytes, own_bytes;
static u32 window, own_window;
static u32 given;	/* the size for what is sent next */
static u32 rtt, odd_rtt;	/* us; odd_rtt is that of every second one */
static bool limited;
/* Bytes that the application has written and that are not sent yet. */
static u32 queued;

/* One round trip; why the state moved at its end. */
static int round_trip(void)
{
	static bool odd;
	bool own = conn.tx.seg;

	/* All that was in flight is acknowledged, */
	now += odd ? odd_rtt : rtt;
	odd = !odd;
	tcp.tcp_mstamp = now;
	tcp.snd_una = tcp.snd_nxt;
	tcp.snd_wnd = own ? own_window : window;
	tcp.chrono_type = limited ? TCP_CHRONO_RWND_LIMITED : TCP_CHRONO_BUSY;
	last_why = MSSFRAC_WHY_ROUND;
	given = mssfrac_tx_mss(sk, tcp.mss_cache);
	/* and the next window goes out. */
	tcp.snd_nxt += conn.tx.seg ? own_bytes : stock_bytes;
	tcp.write_seq = tcp.snd_nxt + queued;
	mssfrac_tx_mss(sk, tcp.mss_cache);
	return last_why;
}

/* A connection with a window of @bytes, in segments of @mss; both arms equal. */
static void connect(u32 mss, u32 bytes)
{
	memset(&conn, 0, sizeof(conn));
	memset(&mn, 0, sizeof(mn));
	memset(&tcp, 0, sizeof(tcp));
	mn.set.tx_frac = 64;
	mn.set.seg_max = 32;
	conn.sk = sk;
	conn.mn = &mn;
	conn.arm = MSSFRAC_TREATED;
	tcp.mss_cache = mss;
	tcp.snd_cwnd = 100;
	tcp.max_window = 1 << 20;
	tcp.min_rtt = rtt = odd_rtt = RTT;
	tcp.snd_una = tcp.snd_nxt = 0xffff0000;	/* it wraps soon */
	sk->send_head = true;
	limited = true;
	queued = 0;
	window = own_window = bytes;
	stock_bytes = own_bytes = mssfrac_whole_segments(bytes, mss);
	tcp.tcp_mstamp = now = 1000000;
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

/* Round trips until @why; @most + 1: it did not come. */
static int until(int why, int most)
{
	int n;

	for (n = 1; n <= most; n++)
		if (round_trip() == why)
			return n;
	return n;
}

/* Round trips of stock, that begin with a trial which delivers as much. */
static int fail_trial(void)
{
	until(MSSFRAC_WHY_TRIAL, 100);
	return until(MSSFRAC_WHY_NO_GAIN, 100);
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

static void trials(void)
{
	connect(MSS, WINDOW);
	own_bytes = WINDOW;
	check("a trial after two epochs of 12 round trips",
	      within(until(MSSFRAC_WHY_TRIAL, 100), 24, 24) &&
	      within(conn.tx.seg, 6512, 6512));
	check("kept after an epoch, once old cuts have gone",
	      within(until(MSSFRAC_WHY_KEPT, 100), 13, 15) &&
	      mssfrac_tx_mss(sk, MSS) == 6512);
	check("stock is measured again after 512 round trips",
	      within(until(MSSFRAC_WHY_RECHECK, 1000), 512, 512 + 12) &&
	      !conn.tx.seg);
	until(MSSFRAC_WHY_KEPT, 100);
	check("the next time after 1024",
	      within(until(MSSFRAC_WHY_RECHECK, 2000), 1024, 1024 + 12));

	connect(MSS, WINDOW);
	own_bytes = WHOLE + WHOLE / 64 + 1;
	until(MSSFRAC_WHY_TRIAL, 100);
	check("a gain of 1/64 is kept",
	      within(until(MSSFRAC_WHY_KEPT, 100), 1, 20));

	connect(MSS, WINDOW);
	own_bytes = WHOLE + WHOLE / 65;
	fail_trial();
	check("less is not", last_why == MSSFRAC_WHY_NO_GAIN && !conn.tx.seg);

	connect(MSS, WINDOW);
	own_bytes = WHOLE / 2;
	until(MSSFRAC_WHY_TRIAL, 100);
	check("half as much is given up after 8, and one for old cuts",
	      within(until(MSSFRAC_WHY_NO_GAIN, 100), 9, 9));

	connect(MSS, WINDOW);
	own_bytes = WINDOW;
	until(MSSFRAC_WHY_KEPT, 100);
	own_bytes = WHOLE;
	check("a size that delivers as much as stock did is kept",
	      until(MSSFRAC_WHY_LOST_GAIN, 300) > 300);
	own_bytes = WHOLE - WHOLE / 100;
	check("one that delivers less is given up at an epoch's end",
	      within(until(MSSFRAC_WHY_LOST_GAIN, 100), 12, 24));
}

/* What was cut for the old size delivers less: a send buffer of 100 windows. */
static void old_cuts(void)
{
	connect(MSS, WINDOW);
	queued = 100 * WHOLE;
	until(MSSFRAC_WHY_TRIAL, 100);
	own_bytes = WHOLE - WHOLE / 5;
	check("a fifth less while old cuts are in the queue says nothing",
	      until(MSSFRAC_WHY_NO_GAIN, 120) > 120);
	own_bytes = WINDOW;
	check("the size is judged once they have gone",
	      within(until(MSSFRAC_WHY_KEPT, 100), 12, 20));

	connect(MSS, WINDOW);
	queued = 100 * WHOLE;
	until(MSSFRAC_WHY_TRIAL, 100);
	own_bytes = WHOLE - WHOLE / 3;
	check("a third less is given up after 8 even then",
	      within(until(MSSFRAC_WHY_NO_GAIN, 100), 8, 8));

	connect(MSS, WINDOW);
	queued = 1000 * WHOLE;
	own_bytes = WINDOW;
	until(MSSFRAC_WHY_TRIAL, 100);
	check("after 256 round trips it is judged with old cuts in the queue",
	      within(until(MSSFRAC_WHY_KEPT, 400), 256 + 12, 256 + 13));
}

/* Stock delivers @first for an epoch, then @rest: round trips from there on. */
static int trial_after(u32 first, u32 rest)
{
	connect(MSS, WINDOW);
	stock_bytes = first;
	until(MSSFRAC_WHY_TRIAL, 12);
	stock_bytes = rest;
	return until(MSSFRAC_WHY_TRIAL, 100);
}

static void conditions(void)
{
	connect(MSS, 2 * WHOLE);
	check("no trial where whole segments fill the window",
	      until(MSSFRAC_WHY_TRIAL, 300) > 300);
	connect(MSS, WINDOW);
	tcp.snd_cwnd = 4;
	check("nor where the congestion window would be the limit",
	      until(MSSFRAC_WHY_TRIAL, 300) > 300);
	connect(MSS, WINDOW);
	tcp.snd_cwnd = 5;
	check("one segment more, and it is not",
	      until(MSSFRAC_WHY_TRIAL, 300) <= 24);
	connect(MSS, WINDOW);
	limited = false;
	check("nor where the window is not the limit",
	      until(MSSFRAC_WHY_TRIAL, 300) > 300);
	connect(MSS, WINDOW);
	conn.arm = MSSFRAC_STOCK;
	check("nor in the stock arm", until(MSSFRAC_WHY_TRIAL, 300) > 300);
	connect(MSS, 33 * MSS);
	check("nor in a window of more segments than asked for",
	      until(MSSFRAC_WHY_TRIAL, 300) > 300);
	connect(MSS, WINDOW);
	stock_bytes = WINDOW;
	rtt = odd_rtt = RTT + RTT / 10;
	check("nor where each of the round trips, long ones, took all of it",
	      until(MSSFRAC_WHY_TRIAL, 300) > 300);
	rtt = odd_rtt = RTT + RTT / 4;
	check("however long", until(MSSFRAC_WHY_TRIAL, 300) > 300);
	rtt = RTT + RTT / 16;
	odd_rtt = RTT + RTT / 3;
	check("and unevenly", until(MSSFRAC_WHY_TRIAL, 300) > 300);
	rtt = RTT;
	odd_rtt = RTT + RTT / 2;
	check("but where ACKs wait in some round trips only, there is one",
	      until(MSSFRAC_WHY_TRIAL, 300) <= 24);
	connect(MSS, 5 * MSS + WHOLE / 3);
	stock_bytes = MSS;
	check("nor where more is missing than segments of ours could add",
	      until(MSSFRAC_WHY_TRIAL, 300) > 300);

	check("not just after the rate fell: the epoch before was no measure",
	      within(trial_after(WINDOW, WHOLE), 24, 24));
	connect(MSS, WINDOW);
	stock_bytes = WINDOW;
	until(MSSFRAC_WHY_TRIAL, 24);
	stock_bytes = WINDOW - WINDOW / 10;
	check("nor after one wasteful epoch of two",
	      within(until(MSSFRAC_WHY_TRIAL, 100), 24, 24));
	check("nor while stock finds a better order by itself",
	      within(trial_after(WHOLE - WHOLE / 32, WHOLE), 24, 24));
	check("by less than 1/64 it does not",
	      within(trial_after(WHOLE - WHOLE / 80, WHOLE), 12, 12));
	connect(MSS, WINDOW);
	until(MSSFRAC_WHY_TRIAL, 12);
	window = WINDOW + WINDOW / 32;
	check("nor in a window that just moved",
	      within(until(MSSFRAC_WHY_TRIAL, 100), 24, 24));
}

static void waits(void)
{
	connect(MSS, WINDOW);
	fail_trial();
	check("after a trial that fails the next comes 32 round trips later",
	      within(until(MSSFRAC_WHY_TRIAL, 1000), 32, 32 + 13));
	until(MSSFRAC_WHY_NO_GAIN, 100);
	check("then 512", within(until(MSSFRAC_WHY_TRIAL, 1000), 512, 512 + 13));
	until(MSSFRAC_WHY_NO_GAIN, 100);
	check("then 8192",
	      within(until(MSSFRAC_WHY_TRIAL, 9000), 8192, 8192 + 13));

	connect(MSS, WINDOW);
	fail_trial();
	stock_bytes = own_bytes = WHOLE - WHOLE / 32;
	check("8192 at once where a trial left stock slower in the same window",
	      within(until(MSSFRAC_WHY_TRIAL, 9000), 8192 + 32, 8192 + 32 + 25));

	/* Five MSS and a rest, instead of two. */
	connect(MSS, WINDOW);
	fail_trial();
	until(MSSFRAC_WHY_TRIAL, 100);
	until(MSSFRAC_WHY_NO_GAIN, 100);
	window = own_window = 5 * MSS + 4000;
	stock_bytes = own_bytes = 5 * MSS;
	check("a window of more segments need not wait",
	      within(until(MSSFRAC_WHY_TRIAL, 600), 12, 37));
	until(MSSFRAC_WHY_NO_GAIN, 100);
	window = own_window = WINDOW;
	stock_bytes = own_bytes = WHOLE;
	check("but once: a window may go to and fro",
	      until(MSSFRAC_WHY_TRIAL, 400) > 400);
	until(MSSFRAC_WHY_TRIAL, 9000);
	own_bytes = WINDOW;
	until(MSSFRAC_WHY_KEPT, 100);
	own_bytes = WHOLE - 100;
	until(MSSFRAC_WHY_LOST_GAIN, 100);
	window = own_window = 5 * MSS + 4000;
	stock_bytes = own_bytes = 5 * MSS;
	check("and again once a trial was kept",
	      within(until(MSSFRAC_WHY_TRIAL, 600), 12, 37));
}

static void windows(void)
{
	/* Our segments make the receiver offer four MSS instead of two. */
	connect(MSS, WINDOW);
	own_bytes = WINDOW;
	until(MSSFRAC_WHY_KEPT, 100);
	own_window = 4 * MSS + 4000;
	check("in a window of more segments stock might deliver as much",
	      within(until(MSSFRAC_WHY_MOVED, 100), 12, 13));
	check("it is offered less: then the window is ours, and the size is kept",
	      within(until(MSSFRAC_WHY_KEPT, 100), 1, 50) &&
	      until(MSSFRAC_WHY_MOVED, 500) > 500);

	/* Stock again, and now it fills what it is offered: two MSS, and little more. */
	connect(MSS, WINDOW);
	own_bytes = WINDOW;
	until(MSSFRAC_WHY_RECHECK, 1000);
	window = WHOLE + 200;
	check("back to our size, after two epochs, where stock delivers less",
	      within(until(MSSFRAC_WHY_TRIAL, 100), 24, 25));
	own_bytes = WHOLE;
	until(MSSFRAC_WHY_NO_GAIN, 100);
	check("not again where that was not so", until(MSSFRAC_WHY_TRIAL, 600) > 600);
	connect(MSS, WINDOW);
	own_bytes = WINDOW;
	until(MSSFRAC_WHY_RECHECK, 1000);
	window = 4 * MSS;
	stock_bytes = 4 * MSS;
	until(MSSFRAC_WHY_TRIAL, 50);
	window = WHOLE + 200;
	stock_bytes = WHOLE;
	check("nor where stock has delivered as much since",
	      until(MSSFRAC_WHY_TRIAL, 600) > 600);

	connect(MSS, WINDOW);
	own_bytes = WINDOW;
	until(MSSFRAC_WHY_KEPT, 100);
	own_window = own_bytes = WINDOW - 800;
	until(MSSFRAC_WHY_KEPT, 25);
	check("the size follows the window down",
	      within(conn.tx.seg, 6312, 6312));
	own_window = own_bytes = WINDOW - 400;
	until(MSSFRAC_WHY_KEPT, 25);
	check("not up by less than MSS/64", within(conn.tx.seg, 6312, 6312));
	own_window = own_bytes = WINDOW;
	until(MSSFRAC_WHY_KEPT, 25);
	check("up by more", within(conn.tx.seg, 6512, 6512));
	own_window = own_bytes = WHOLE;
	check("and is given up where whole segments fill it",
	      within(until(MSSFRAC_WHY_MOVED, 100), 1, 13) && !conn.tx.seg);

	connect(MSS, WINDOW);
	own_bytes = WINDOW;
	until(MSSFRAC_WHY_KEPT, 100);
	tcp.mss_cache = MSS - 500;
	check("a new path MTU ends all of it",
	      mssfrac_tx_mss(sk, MSS - 500) == MSS - 500 &&
	      last_why == MSSFRAC_WHY_MSS && !conn.tx.seg);

	connect(MSS, WINDOW);
	own_bytes = WINDOW;
	until(MSSFRAC_WHY_KEPT, 100);
	tcp.inet_conn.icsk_ca_state = TCP_CA_Recovery;
	check("in recovery the size is the kernel's",
	      mssfrac_tx_mss(sk, MSS) == MSS);
	tcp.inet_conn.icsk_ca_state = TCP_CA_Open;
	mn.set.tx_frac = 0;
	check("and off is off at once", mssfrac_tx_mss(sk, MSS) == MSS);
}

static void nudges(void)
{
	/* Three of four segments come, and that is no gain. */
	connect(MSS, WINDOW);
	stock_bytes = 3 * 6512 - 200;
	own_bytes = 3 * 6512;
	until(MSSFRAC_WHY_TRIAL, 100);
	check("where a segment a round trip is missing, a nudge",
	      within(until(MSSFRAC_WHY_NUDGE, 100), 12, 15));
	check("what is sent next goes in halves, once",
	      within(given, 3256, 3256) &&
	      within(mssfrac_tx_mss(sk, MSS), 6512, 6512));
	own_bytes = WINDOW;
	check("and all of the window is kept",
	      within(until(MSSFRAC_WHY_KEPT, 100), 1, 13));
	connect(MSS, WINDOW);
	stock_bytes = 3 * 6512 - 200;
	own_bytes = 3 * 6512;
	until(MSSFRAC_WHY_NUDGE, 100);
	check("one that moves nothing is the last",
	      within(until(MSSFRAC_WHY_NO_GAIN, 100), 12, 13));
}

static void pairs(void)
{
	connect_loopback(15);
	check("a chunk that holds one segment gets two",
	      within(until(MSSFRAC_WHY_TRIAL, 100), 24, 24) &&
	      within(conn.tx.seg, 28998, 28998));
	connect_loopback(14);
	check("larger ones where the congestion window is short of segments",
	      within(until(MSSFRAC_WHY_TRIAL, 100), 24, 24) &&
	      within(conn.tx.seg, 31230, 31230));
	connect_loopback(13);
	check("and none where a chunk would not hold two of them",
	      until(MSSFRAC_WHY_TRIAL, 300) > 300);
}

/* After some round trips stock is offered @segments only, and takes all of it. */
static void offer_less(u32 segments)
{
	until(MSSFRAC_WHY_TRIAL, 4);
	stock_bytes = segments * tcp.mss_cache;
	window = stock_bytes + 100;
}

static void answers(void)
{
	connect_loopback(15);
	offer_less(4);
	check("where a chunk holds one segment, what is not offered is waste, too",
	      until(MSSFRAC_WHY_TRIAL, 100) <= 36);
	connect_loopback(15);
	offer_less(4);
	stock_bytes = window = 350000;
	check("less than a segment is no such answer",
	      until(MSSFRAC_WHY_TRIAL, 300) > 300);
	connect_loopback(15);
	offer_less(2);
	check("but no more than segments of ours could add",
	      until(MSSFRAC_WHY_TRIAL, 300) > 300);
}

static void steps(void)
{
	connect(MSS, WINDOW);
	mn.set.tx_steady = 1;
	own_bytes = WINDOW;
	until(MSSFRAC_WHY_TRIAL, 100);
	check("step by step: the first size is MSS/64 below",
	      within(conn.tx.seg, 8809, 8809));
	check("the next one after it was judged as long",
	      within(until(MSSFRAC_WHY_STEP, 100), 13, 15) &&
	      within(conn.tx.seg, 8670, 8670));
	/* Half way down lies the best. */
	while (conn.tx.seg > 7600)
		until(MSSFRAC_WHY_STEP, 100);
	own_bytes = WHOLE + WHOLE / 8;
	check("down to the wanted one", until(MSSFRAC_WHY_KEPT, 400) <= 400);
	check("and the best of them is kept",
	      within(conn.tx.seg, 7600, 8809));
}

static void steps_in_pairs(void)
{
	connect_loopback(15);
	mn.set.tx_steady = 1;
	own_bytes = 405995;
	until(MSSFRAC_WHY_TRIAL, 100);
	check("where a chunk holds one segment, from half a chunk down",
	      within(conn.tx.seg, 32607 - 1023, 32607 - 1023));
	check("to the wanted size", until(MSSFRAC_WHY_KEPT, 100) <= 100 &&
	      within(conn.tx.goal, 28998, 28998));
}

static void stalls(void)
{
	connect(MSS, WINDOW);
	tcp.snd_wnd = 4000;
	check("below one MSS the first wait is the kernel's",
	      mssfrac_tx_mss(sk, MSS) == MSS);
	now += 99 * USEC_PER_MSEC;
	check("less than 100 ms is no stall", mssfrac_tx_mss(sk, MSS) == MSS);
	now += USEC_PER_MSEC;
	check("after 100 ms halves of the window",
	      mssfrac_tx_mss(sk, MSS) == 2000);
	tcp.packets_out = 2;
	tcp.snd_wnd = 3000;
	check("the size stays while the window shrinks between two reads",
	      mssfrac_tx_mss(sk, MSS) == 2000);
	tcp.snd_wnd = MSS;
	check("a whole segment is the kernel's again",
	      mssfrac_tx_mss(sk, MSS) == MSS);
	tcp.packets_out = 0;
	tcp.snd_wnd = 4000;
	check("it does not wait a second time", mssfrac_tx_mss(sk, MSS) == 2000);
}

int main(void)
{
	printf("KTAP version 1\n1..70\n");
	trials();
	old_cuts();
	conditions();
	waits();
	windows();
	nudges();
	pairs();
	answers();
	steps();
	steps_in_pairs();
	stalls();
	return failures || cases != 70;
}
