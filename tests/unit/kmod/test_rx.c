// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the receiver's policy (kmod/rx.c) counts, and when it acts, in user space:
 * the very file, on a socket of kernel.h.  What a window should be is
 * tested by tests/kunit/window_kunit.c.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Tracepoints: the last window is kept. */
#define MSSFRAC_TRACE_H
static bool traced;
static uint32_t last_space;
#define trace_window_enabled()	traced
#define trace_window(sk, conn, space, stock, offer)	\
	((void)(sk), (void)(conn), (void)(stock), (void)(offer), last_space = (space))

#include "../../../kmod/rx.c"

#include "one_connection.h"

#define MSS	8948
#define SPACE	25000	/* two MSS and a rest */
#define STOCK	(2 * MSS)

/* A treated connection with all policies off; @wscale 0: without window scaling. */
static void connect(u8 wscale)
{
	memset(room, 0, sizeof(room));
	memset(&mn, 0, sizeof(mn));
	memset(&tcp, 0, sizeof(tcp));
	mn.set.seg_max = 32;
	conn->sk = sk;
	conn->mn = &mn;
	conn->arm = MSSFRAC_TREATED;
	tcp.rx_opt.rcv_wscale = wscale;
	tcp.out_of_order_queue = true;
	tcp.advmss = MSS;
	tcp.inet_conn.icsk_ack.rcv_mss = MSS;
	tcp.rcv_ssthresh = tcp.window_clamp = 60000;
	sk->space = sk->full_space = SPACE;
	traced = false;
	last_space = 0;
}

/* As counters.c does for a reader. */
static u64 segments(void)
{
	u64 counted = conn->count.rx_segments.v;

	return counted + mssfrac_conn_uncounted(counted, tcp.data_segs_in,
						conn->extended ?
						conn->policy->first_in : 0);
}

/* Each call a window, after @step segments: none is lost or counted twice. */
static bool exact_over_wraps(u32 step)
{
	u32 first = tcp.data_segs_in;
	u64 sent = 0;

	for (int i = 0; i < 40; i++) {
		tcp.data_segs_in += step;
		sent += step;
		mssfrac_rx_window(sk, STOCK);
		if (segments() != sent) {
			printf("# from %u, %d windows: %llu, not %llu\n", first, i,
			       (unsigned long long)segments(),
			       (unsigned long long)sent);
			return false;
		}
	}
	return true;
}

static int cases, failures;

static void check(const char *name, bool ok)
{
	printf("%sok %d %s\n", ok ? "" : "not ", ++cases, name);
	failures += !ok;
}

static bool counted(u64 windows, u64 advertised, u64 lost)
{
	return conn->count.rx_windows.v == windows &&
	       conn->count.rx_bytes_advertised.v == advertised &&
	       conn->count.rx_bytes_lost.v == lost;
}

static void counts(void)
{
	connect(0);
	check("what the kernel rounds off is counted",
	      mssfrac_rx_window(sk, STOCK) == STOCK &&
	      counted(1, STOCK, SPACE - STOCK));
	tcp.rcv_ssthresh = STOCK + 100;
	mssfrac_rx_window(sk, STOCK);
	check("but no more than the kernel accepts",
	      counted(2, 2 * STOCK, SPACE - STOCK + 100));
	check("a closed window is none", !mssfrac_rx_window(sk, 0) &&
	      counted(2, 2 * STOCK, SPACE - STOCK + 100));

	connect(7);
	check("with window scaling nothing is rounded off",
	      mssfrac_rx_window(sk, STOCK) == STOCK && counted(1, STOCK, 0));
	mssfrac_rx_window(sk, 0);
	check("and a closed window is none there", counted(1, STOCK, 0));
	traced = true;
	mssfrac_rx_window(sk, STOCK);
	check("a tracer sees the space, and the counts are the same",
	      last_space == SPACE && counted(2, 2 * STOCK, 0));

	connect(7);
	tcp.repair = true;
	check("a socket in repair mode is not counted",
	      mssfrac_rx_window(sk, STOCK) == STOCK && counted(0, 0, 0));
}

static void wraps_left_alone(void)
{
	static const u32 step = 0x7fffffff;
	u64 sent = 0;

	connect(7);
	tcp.repair = true;
	for (int i = 0; i < 5; i++) {
		tcp.data_segs_out += step;
		sent += step;
		mssfrac_rx_window(sk, STOCK);
	}
	check("those it sends, too", conn->count.tx_segments.v == sent);
}

static void wraps(void)
{
	static const u32 steps[] = { 1, 0x10000000, 0x7fffffff };
	static const u32 firsts[] = { 1, 0x7ffffff0, 0xc0000000 };

	for (int i = 0; i < 3; i++) {
		connect(7);
		check("segments stay exact over wraps", exact_over_wraps(steps[i]));
	}
	for (int i = 0; i < 3; i++) {
		connect(7);
		conn->extended = 1;
		conn->policy->first_in = tcp.data_segs_in = firsts[i];
		check("also of a connection older than the module",
		      exact_over_wraps(0x7fffffff));
	}
	connect(7);
	tcp.repair = true;
	check("also of a socket that is left alone", exact_over_wraps(0x7fffffff));
	wraps_left_alone();
}

/* With the sysctl on; the receiver's window is steady from now on. */
static u32 treated(u8 wscale)
{
	connect(wscale);
	mn.set.rx_frac = 64;
	mssfrac_rx_window(sk, STOCK);
	tcp.data_segs_in += STEADY_SEGS;
	return mssfrac_rx_window(sk, STOCK);
}

static void policies(void)
{
	u32 raised = treated(0);

	check("a treated window is raised once the kernel's is steady",
	      raised > STOCK && raised <= SPACE &&
	      conn->policy->count.rx_raised.v == 1 &&
	      counted(2, STOCK + raised, 2 * SPACE - STOCK - raised));
	sk->full_space = 4 * MSS + 100;
	check("but not where full-sized segments fill it once all is read",
	      mssfrac_rx_window(sk, STOCK) == STOCK);
	tcp.rcv_ssthresh = SPACE;
	check("of what the kernel accepts then",
	      mssfrac_rx_window(sk, STOCK) > STOCK);
	tcp.rcv_ssthresh = 3 * MSS - 1;
	check("which do not fill one that is a byte short",
	      mssfrac_rx_window(sk, STOCK) > STOCK);
	check("not with window scaling, and no more is kept for it",
	      treated(7) == STOCK && !conn->extended);
	traced = true;
	check("whether or not it is traced",
	      mssfrac_rx_window(sk, STOCK) == STOCK && !conn->extended);
	no_memory = true;
	check("without memory a window is the kernel's", treated(0) == STOCK);
	no_memory = false;
	connect(0);
	conn->arm = MSSFRAC_STOCK;
	mn.set.rx_frac = 64;
	check("nor in the control arm",
	      mssfrac_rx_window(sk, STOCK) == STOCK && !conn->extended);

	connect(7);
	mn.set.rx_mss_est = 1;
	mssfrac_rx_window(sk, STOCK);
	tcp.rcv_nxt += 4 * 5000;
	tcp.data_segs_in += 4;
	mssfrac_rx_window(sk, STOCK);
	check("rx_mss_est measures, with window scaling, too",
	      mssfrac_rx_mss(sk, conn) == 5000);
}

int main(void)
{
	printf("KTAP version 1\n1..24\n");
	counts();
	wraps();
	policies();
	return failures || cases != 24;
}
