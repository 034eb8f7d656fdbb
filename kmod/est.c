// SPDX-License-Identifier: GPL-2.0-only
/*
 * How large the sender's segments are: rx_mss_est = 1.
 *
 * The kernel's estimate (tcp_measure_rcv_mss) never exceeds the MSS we
 * advertised, though a segment may carry up to 40 bytes of payload more where
 * the sender leaves options out (the SC2003 paper's 8960 v 8948), and two short
 * records of equal size lower it.  This one is the largest payload of the last
 * EST_SEGS data segments, each measured as it comes; a GRO packet counts by its
 * segments.
 *
 * The kernel shows each segment to the tracepoint tcp_probe.  A probe costs
 * every segment of the machine, so there is none before the first namespace
 * asks for it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mutex.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/tracepoint.h>

#include "conn.h"
#include "est.h"
#include "window.h"

/* A sender that changed its size is believed after so many segments. */
#define EST_SEGS 256

static struct {
	struct mutex lock;	/* of the other members */
	bool wanted;		/* some namespace asked */
	bool open;		/* between init and exit: may probe */
	struct tracepoint *tp;	/* tcp_probe; NULL: not probing */
} est = {
	.lock = __MUTEX_INITIALIZER(est.lock),
};

/* Called at the start of tcp_rcv_established(), socket lock held. */
static void probe_tcp_probe(void *data, struct sock *sk, struct sk_buff *skb)
{
	struct mssfrac_conn *conn = mssfrac_conn_find(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 len;

	if (!conn || !READ_ONCE(conn->mn->set.rx_mss_est))
		return;
	len = skb->len - tcp_hdrlen(skb);
	if (len)
		minmax_running_max(&conn->rx.seg, EST_SEGS, tp->data_segs_in,
				   mssfrac_segment_seen(len,
							skb_shinfo(skb)->gso_size,
							tp->advmss));
}

/* Bytes; the kernel's own estimate where rx_mss_est is 0 or nothing came. */
u32 mssfrac_est_mss(const struct sock *sk, const struct mssfrac_conn *conn)
{
	u32 seg = minmax_get(&conn->rx.seg);

	if (READ_ONCE(conn->mn->set.rx_mss_est) && seg)
		return seg;
	return inet_csk(sk)->icsk_ack.rcv_mss;
}

static void match_tracepoint(struct tracepoint *tp, void *priv)
{
	if (!strcmp(tp->name, "tcp_probe"))
		*(struct tracepoint **)priv = tp;
}

static int probe_once(void)
{
	struct tracepoint *tp = NULL;
	int err = -ENOENT;

	lockdep_assert_held(&est.lock);
	if (est.tp || !est.wanted || !est.open)
		return 0;
	for_each_kernel_tracepoint(match_tracepoint, &tp);
	if (tp)
		err = tracepoint_probe_register(tp, probe_tcp_probe, NULL);
	if (err)
		pr_err("rx_mss_est: cannot probe tcp_probe (error %d)\n", err);
	else
		est.tp = tp;
	return err;
}

/* A namespace wants the estimate.  Errors: -ENOENT, those of tracepoints. */
int mssfrac_est_want(void)
{
	int err;

	mutex_lock(&est.lock);
	est.wanted = true;
	err = probe_once();
	mutex_unlock(&est.lock);
	return err;
}

/* Connections can be found from now on. */
int mssfrac_est_init(void)
{
	int err;

	mutex_lock(&est.lock);
	est.open = true;
	err = probe_once();
	mutex_unlock(&est.lock);
	return err;
}

void mssfrac_est_exit(void)
{
	mutex_lock(&est.lock);
	est.open = false;
	if (est.tp) {
		tracepoint_probe_unregister(est.tp, probe_tcp_probe, NULL);
		tracepoint_synchronize_unregister();
		est.tp = NULL;
	}
	mutex_unlock(&est.lock);
}
