// SPDX-License-Identifier: GPL-2.0-only
/*
 * The congestion control "mssfrac" of mssfrac_cc.ko: registers the callbacks of
 * cong_callbacks.h.
 */
#include <linux/module.h>
#include <net/tcp.h>

#include "cong.h"

static u8 cong_state(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_state;
}

#include "cong_callbacks.h"

static struct tcp_congestion_ops cong_ops __read_mostly = {
	/*
	 * Restricted: an administrator selects or allows it.  A socket that
	 * uses it holds the module.
	 */
	.name		= "mssfrac",
	.owner		= THIS_MODULE,
	.init		= cong_init,
	.ssthresh	= cong_ssthresh,
	.cong_avoid	= cong_avoid,
	.set_state	= cong_set_state,
	.undo_cwnd	= cong_undo,
	.pkts_acked	= cong_pkts_acked,
	.min_tso_segs	= cong_min_tso_segs,
};

int mssfrac_cong_register(void)
{
	BUILD_BUG_ON(sizeof(struct cong) > ICSK_CA_PRIV_SIZE);
	return tcp_register_congestion_control(&cong_ops);
}

void mssfrac_cong_unregister(void)
{
	tcp_unregister_congestion_control(&cong_ops);
}
