/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Congestion control "mssfrac": CUBIC (RFC 9438, with its Reno-friendly
 * region) that counts bytes and moves its window in steps of MSS/64.
 *
 * The kernel counts a congestion window in segments.  This one is kept in
 * bytes, and snd_cwnd is its value rounded to segments.  In windows of few
 * segments the rounding is a large part.  There snd_cwnd is rounded up, and
 * pacing compensates for it (mssfrac_pacing_rate()), as in TCP Prague.  The
 * pacing is TCP's own and needs no sch_fq.
 *
 * Counting bytes makes the growth independent of the segment size in force
 * (path MTU, or the smaller segments of tx.c) and of ACK division.  A change of
 * the segment size leaves the window at the same number of bytes.
 *
 * Why cong_avoid and not cong_control: with cong_control this file would have
 * to implement proportional rate reduction, the restart after idle and the
 * validation of an unused window.  With cong_avoid the kernel does.  The
 * drawback is that the kernel sets its own pacing rate after cong_avoid.  The
 * only callback between that and sending is min_tso_segs, which therefore sets
 * the rate.
 *
 * The kernel also writes snd_cwnd (recovery, timeouts, idle).  sync() detects
 * that and adopts the value.
 *
 * The window falls below two segments only where the kernel's does, after a
 * timeout.  Every callback runs under the socket lock.
 *
 * Two editions compile these callbacks: cong.c for mssfrac_cc.ko, and
 * bpf/mssfrac_cc.bpf.c for BPF.  Therefore nothing here includes a header of the
 * kernel.  An edition declares what the callbacks use and defines the following
 * functions before it includes this file:
 *
 *   mssfrac_cong_segment(sk)  bytes; the segment size in force, at least 1
 *   cong_state(sk)            icsk_ca_state, a bit field
 */
#ifndef MSSFRAC_CONG_CALLBACKS_H
#define MSSFRAC_CONG_CALLBACKS_H

#include "cong_state.h"
#include "cwnd.h"
#include "window.h"

/* Segments that one ACK may count for: RFC 3465 section 2; in Loss section 2.3. */
#define LIMIT		2
#define LIMIT_LOSS	1
/*
 * Leave slow start when the minimum of 8 samples of a round trip exceeds the
 * minimum of all by 1/8, clamped to 4..16 ms (RFC 9406 section 4.2, and
 * HYSTART_DELAY of tcp_cubic.c).
 */
#define HYSTART_SAMPLES	8
#define HYSTART_SHIFT	3
#define HYSTART_MIN_US	(4 * USEC_PER_MSEC)
#define HYSTART_MAX_US	(16 * USEC_PER_MSEC)
#define HYSTART_LOW	16	/* segments; not below */

static void set_window(struct sock *sk, struct cong *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);

	ca->win = min(ca->win, MSSFRAC_CWND_MAX);
	ca->cwnd = mssfrac_cwnd_segments(ca->win, ca->seg);
	if (ca->cwnd > tp->snd_cwnd_clamp) {
		ca->cwnd = tp->snd_cwnd_clamp;
		ca->win = min_t(u64, ca->win, (u64)ca->cwnd * ca->seg);
	}
	tcp_snd_cwnd_set(tp, ca->cwnd);
}

static u32 bytes_of(u32 segs, u32 seg)
{
	return min_t(u64, (u64)segs * seg, MSSFRAC_CWND_MAX);
}

/* Adopt changes since the last call: segment size, snd_cwnd, snd_ssthresh. */
static void sync(struct sock *sk, struct cong *ca)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 seg = mssfrac_cong_segment(sk);

	if (tp->snd_ssthresh != ca->ssthresh_segs) {
		ca->ssthresh_segs = tp->snd_ssthresh;
		ca->ssthresh = tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH ?
			       U32_MAX : bytes_of(tp->snd_ssthresh, seg);
	} else if (seg != ca->seg && ca->ssthresh != U32_MAX) {
		/* The same number of bytes in segments of another size. */
		ca->ssthresh_segs = mssfrac_cwnd_segments(ca->ssthresh, seg);
		tp->snd_ssthresh = ca->ssthresh_segs;
	}

	if (tcp_snd_cwnd(tp) != ca->cwnd) {
		/* End of a recovery: the kernel knows only the rounded value. */
		if (tcp_snd_cwnd(tp) == tp->snd_ssthresh)
			ca->win = ca->ssthresh;
		else
			ca->win = bytes_of(tcp_snd_cwnd(tp), seg);
		ca->cwnd = tcp_snd_cwnd(tp);
		/* Reno's estimate cannot exceed a window that was in use. */
		if (ca->curve.w_est > ca->win)
			ca->curve.w_est = ca->win;
	}
	if (seg != ca->seg) {
		ca->seg = seg;
		set_window(sk, ca);
	}
}

static void hystart_round(const struct tcp_sock *tp, struct cong *ca)
{
	ca->round_end = tp->snd_nxt;
	ca->round_rtt_us = U32_MAX;
	ca->samples = 0;
}

static void hystart(struct sock *sk, struct cong *ca, u32 rtt_us)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (after(tp->snd_una, ca->round_end))
		hystart_round(tp, ca);
	if (tcp_snd_cwnd(tp) < HYSTART_LOW)
		return;

	ca->round_rtt_us = min(ca->round_rtt_us, rtt_us);
	if (ca->samples < HYSTART_SAMPLES) {
		ca->samples++;
		return;
	}
	if (ca->round_rtt_us > ca->min_rtt_us +
			       clamp_t(u32, ca->min_rtt_us >> HYSTART_SHIFT,
				       HYSTART_MIN_US, HYSTART_MAX_US)) {
		ca->hystart_done = 1;
		sync(sk, ca);
		ca->ssthresh = ca->win;
		ca->ssthresh_segs = ca->cwnd;
		tp->snd_ssthresh = ca->cwnd;
	}
}

/* Called for every ACK that advances, before cong_avoid, in any state. */
static void cong_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct cong *ca = inet_csk_ca(sk);
	u32 rtt_us;

	ca->acked = (u32)tp->bytes_acked - ca->bytes_seen;
	ca->bytes_seen = tp->bytes_acked;

	if (sample->rtt_us < 0)
		return;
	rtt_us = max(sample->rtt_us, 1);
	if (!ca->min_rtt_us || rtt_us < ca->min_rtt_us)
		ca->min_rtt_us = rtt_us;
	if (!ca->hystart_done && tcp_in_slow_start(tp))
		hystart(sk, ca, rtt_us);
}

/*
 * Does the window limit the sender?  The kernel tests whether snd_cwnd is full.
 * If pacing withholds the rounded-up segment, the window is full when no other
 * full-sized segment fits.
 */
static bool limited(const struct sock *sk, const struct cong *ca)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tcp_is_cwnd_limited(sk) ||
	       (ca->win >= ca->ssthresh &&
		tp->max_packets_out >= ca->win / ca->seg);
}

static void cong_avoid(struct sock *sk, u32 ack, u32 delivered)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct cong *ca = inet_csk_ca(sk);
	struct mssfrac_curve *curve = &ca->curve;
	u32 passed_us = (u32)tp->tcp_mstamp - ca->stamp;
	u32 mss = max(tp->mss_cache, 1U);
	u32 step = mssfrac_step(mss, MSSFRAC_CWND_FRAC);
	bool loss = cong_state(sk) == TCP_CA_Loss;
	u32 acked, need;

	acked = mssfrac_bytes_counted(ca->acked, delivered, mss,
				      loss ? LIMIT_LOSS : LIMIT);
	ca->acked = 0;
	ca->stamp = tp->tcp_mstamp;
	sync(sk, ca);
	if (!limited(sk, ca))
		return;

	if (ca->win < ca->ssthresh) {
		acked = mssfrac_slow_start(&ca->win, acked, ca->ssthresh);
		set_window(sk, ca);
		if (!acked)
			return;
	}

	/*
	 * The time of the curve stops while something else is the limit or the
	 * sender is idle (RFC 9438 section 5.8).  Two ACKs of a busy sender are
	 * at most a round trip apart.
	 */
	if (!curve->w_est)
		mssfrac_curve_begin(curve, ca->win, mss);
	else
		curve->t_us = min(curve->t_us + min(passed_us, tp->srtt_us >> 3),
				  MSSFRAC_TIME_MAX_MS * 1000);

	need = mssfrac_bytes_per_step(ca->win, mssfrac_reno_growth(mss),
				      step);
	curve->w_est += step * mssfrac_buy_steps(&ca->est_credit, acked, need);
	curve->w_est = min(curve->w_est, MSSFRAC_CWND_MAX);

	need = mssfrac_bytes_per_step(ca->win,
				      mssfrac_growth(curve, ca->win, mss,
						     ca->min_rtt_us), step);
	ca->win += step * mssfrac_buy_steps(&ca->credit, acked, need);
	set_window(sk, ca);
}

/* Loss or ECN.  Called once per event, before the kernel reduces snd_cwnd. */
static u32 cong_ssthresh(struct sock *sk)
{
	struct cong *ca = inet_csk_ca(sk);

	sync(sk, ca);
	ca->undo_win = ca->win;
	ca->undo_curve = ca->curve;
	mssfrac_curve_end(&ca->curve, ca->win);
	ca->credit = 0;
	ca->est_credit = 0;
	ca->ssthresh = mssfrac_reduced(ca->win, ca->seg);
	ca->ssthresh_segs = mssfrac_cwnd_segments(ca->ssthresh, ca->seg);
	return ca->ssthresh_segs;
}

/* The reduction was spurious: RFC 9438 section 4.9 restores all of it. */
static u32 cong_undo(struct sock *sk)
{
	struct cong *ca = inet_csk_ca(sk);

	sync(sk, ca);
	if (ca->undo_win > ca->win) {
		ca->win = ca->undo_win;
		ca->curve = ca->undo_curve;
	}
	set_window(sk, ca);
	return ca->cwnd;
}

static void cong_set_state(struct sock *sk, u8 state)
{
	struct cong *ca = inet_csk_ca(sk);

	if (state != TCP_CA_Loss)
		return;
	/* A timeout invalidates all knowledge of the path (section 4.8). */
	memset(&ca->curve, 0, sizeof(ca->curve));
	ca->credit = 0;
	ca->est_credit = 0;
	ca->hystart_done = 0;
	hystart_round(tcp_sk(sk), ca);
}

/*
 * Pace small windows, to preserve their fraction.  ACKs clock larger windows and
 * slow start, at the kernel's rate, as with cubic: paced flows meet a full queue
 * at other times than flows clocked by ACKs, and would not share it evenly.
 * sch_fq paces as it does with any other congestion control.
 */
static void pace(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct cong *ca = inet_csk_ca(sk);
	u64 rate;

	/*
	 * SO_MAX_PACING_RATE needs pacing.  Setting it takes no lock, so it may
	 * have relied on pacing that was ended below at that moment.
	 */
	if (READ_ONCE(sk->sk_max_pacing_rate) != ~0UL)
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE,
			SK_PACING_NEEDED);

	/* In recovery, or if the kernel just changed snd_cwnd: its rate. */
	if (cong_state(sk) > TCP_CA_Disorder || !tp->srtt_us ||
	    tcp_snd_cwnd(tp) != ca->cwnd)
		return;

	if (ca->win < ca->ssthresh || ca->win > MSSFRAC_PACED_SEGS * ca->seg) {
		if (READ_ONCE(sk->sk_max_pacing_rate) == ~0UL)
			cmpxchg(&sk->sk_pacing_status, SK_PACING_NEEDED,
				SK_PACING_NONE);
		return;
	}

	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	rate = mssfrac_pacing_rate(ca->win,
				   bytes_of(tcp_packets_in_flight(tp) + 2,
					    ca->seg), tp->srtt_us,
				   READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_pacing_ca_ratio));
	WRITE_ONCE(sk->sk_pacing_rate,
		   min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}

/* Called before each burst is sent; returns the kernel's default. */
static u32 cong_min_tso_segs(struct sock *sk)
{
	pace(sk);
	return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_min_tso_segs);
}

/* At the end of the handshake, or later by setsockopt; sync() adopts the state. */
static void cong_init(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct cong *ca = inet_csk_ca(sk);

	memset(ca, 0, sizeof(*ca));
	ca->ssthresh = U32_MAX;
	ca->bytes_seen = tp->bytes_acked;
	ca->stamp = tp->tcp_mstamp;
	hystart_round(tp, ca);
}

#endif /* MSSFRAC_CONG_CALLBACKS_H */
