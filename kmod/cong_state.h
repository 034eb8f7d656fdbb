/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the congestion control keeps of a connection, in icsk_ca_priv of its
 * socket.  The tests print it.
 */
#ifndef MSSFRAC_CONG_STATE_H
#define MSSFRAC_CONG_STATE_H

#include "cwnd.h"

struct cong {
	u32 win;		/* bytes; the window */
	u32 seg;		/* bytes; segment size snd_cwnd was set for */
	u32 cwnd;		/* segments; snd_cwnd as set here */
	u32 ssthresh;		/* bytes; U32_MAX: none yet */
	u32 ssthresh_segs;	/* segments; snd_ssthresh as set here */
	u32 credit;		/* bytes acknowledged towards the next step */
	u32 est_credit;		/* the same, of curve.w_est */
	u32 bytes_seen;		/* bytes_acked, low half, at the last ACK */
	u32 acked;		/* bytes this ACK acknowledged */
	u32 stamp;		/* us, tcp_mstamp; curve.t_us counts up to it */
	u32 min_rtt_us;		/* 0: no sample yet */
	struct mssfrac_curve curve;
	struct mssfrac_curve undo_curve;	/* before the last reduction */
	u32 undo_win;
	u32 round_end;		/* HyStart: sequence that ends the round trip */
	u32 round_rtt_us;	/* shortest of its samples */
	u8 samples;
	u8 hystart_done;
};

#endif /* MSSFRAC_CONG_STATE_H */
