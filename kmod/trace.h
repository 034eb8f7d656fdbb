/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracepoints: the input, the choice and the reason of each policy.  Ports and
 * the socket cookie identify a connection; the cookie is 0 until something
 * requests it, as ss -e does.  Fields are only ever added.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM mssfrac

#if !defined(MSSFRAC_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define MSSFRAC_TRACE_H

#include <linux/sock_diag.h>
#include <linux/tracepoint.h>
#include <net/inet_sock.h>

#include "arm.h"
#include "conn.h"
#include "rx.h"
#include "tx.h"

/* perf and trace-cmd read the format and need the values of these. */
TRACE_DEFINE_ENUM(MSSFRAC_TREATED);
TRACE_DEFINE_ENUM(MSSFRAC_WHY_ROUND);
TRACE_DEFINE_ENUM(MSSFRAC_WHY_NO_LIMIT);
TRACE_DEFINE_ENUM(MSSFRAC_WHY_SIZED);
TRACE_DEFINE_ENUM(MSSFRAC_WHY_STEP);
TRACE_DEFINE_ENUM(MSSFRAC_WHY_REVERTED);
TRACE_DEFINE_ENUM(MSSFRAC_WHY_MOVED);
TRACE_DEFINE_ENUM(MSSFRAC_WHY_STALL);
TRACE_DEFINE_ENUM(MSSFRAC_WHY_MSS);
TRACE_DEFINE_ENUM(MSSFRAC_WHY_NUDGE);

#define show_arm(arm) ((arm) == MSSFRAC_TREATED ? "treated" : "stock")

/* Receiver: a non-zero window was computed.  Sizes in bytes. */
TRACE_EVENT(window,
	TP_PROTO(const struct sock *sk, const struct mssfrac_conn *conn,
		 u32 space, u32 stock, u32 offer),
	TP_ARGS(sk, conn, space, stock, offer),
	TP_STRUCT__entry(
		__field(u64, cookie)
		__field(u32, space)
		__field(u32, rcv_mss)
		__field(u32, mss_est)
		__field(u32, stock)
		__field(u32, offer)
		__field(u16, sport)
		__field(u16, dport)
		__field(u8, arm)
	),
	TP_fast_assign(
		__entry->cookie = atomic64_read(&sk->sk_cookie);
		__entry->space = space;
		__entry->rcv_mss = inet_csk(sk)->icsk_ack.rcv_mss;
		__entry->mss_est = mssfrac_rx_mss(sk, conn);
		__entry->stock = stock;
		__entry->offer = offer;
		__entry->sport = inet_sk(sk)->inet_num;
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->arm = conn->arm;
	),
	TP_printk("cookie=%llu sport=%u dport=%u arm=%s space=%u rcv_mss=%u mss_est=%u stock=%u offer=%u",
		  __entry->cookie, __entry->sport, __entry->dport,
		  show_arm(__entry->arm), __entry->space, __entry->rcv_mss,
		  __entry->mss_est, __entry->stock, __entry->offer)
);

/*
 * Sender: a round trip ended, or the segment size was decided.  Sizes are in
 * bytes.
 */
TRACE_EVENT(align,
	TP_PROTO(const struct sock *sk, const struct mssfrac_conn *conn,
		 u32 window, u32 acked, u8 why),
	TP_ARGS(sk, conn, window, acked, why),
	TP_STRUCT__entry(
		__field(u64, cookie)
		__field(u32, window)
		__field(u32, cwnd)
		__field(u32, acked)
		__field(u32, stock)
		__field(u32, seg)
		__field(u16, sport)
		__field(u16, dport)
		__field(u8, arm)
		__field(u8, why)
	),
	TP_fast_assign(
		__entry->cookie = atomic64_read(&sk->sk_cookie);
		__entry->window = window;
		__entry->cwnd = tcp_snd_cwnd(tcp_sk(sk));
		__entry->acked = acked;
		__entry->stock = tcp_sk(sk)->mss_cache;
		__entry->seg = mssfrac_tx_size(conn);
		__entry->sport = inet_sk(sk)->inet_num;
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->arm = conn->arm;
		__entry->why = why;
	),
	TP_printk("cookie=%llu sport=%u dport=%u arm=%s why=%s window=%u cwnd=%u acked=%u stock=%u seg=%u",
		  __entry->cookie, __entry->sport, __entry->dport,
		  show_arm(__entry->arm),
		  __print_symbolic(__entry->why,
				   { MSSFRAC_WHY_ROUND, "round" },
				   { MSSFRAC_WHY_NO_LIMIT, "not-window-limited" },
				   { MSSFRAC_WHY_SIZED, "sized" },
				   { MSSFRAC_WHY_STEP, "step" },
				   { MSSFRAC_WHY_REVERTED, "reverted" },
				   { MSSFRAC_WHY_MOVED, "window-moved" },
				   { MSSFRAC_WHY_STALL, "stall" },
				   { MSSFRAC_WHY_MSS, "mss-changed" },
				   { MSSFRAC_WHY_NUDGE, "nudge" }),
		  __entry->window, __entry->cwnd, __entry->acked,
		  __entry->stock, __entry->seg)
);

/* A connection ended: its counters since the module first saw it. */
#define MSSFRAC_END_FIELD(name)		__field(u64, name)
#define MSSFRAC_END_ASSIGN(name)	__entry->name = v[MSSFRAC_##name];
#define MSSFRAC_END_FORMAT(name)	" " #name "=%llu"
#define MSSFRAC_END_ARG(name)		, __entry->name
#define MSSFRAC_END(X)			MSSFRAC_CONN_COUNTERS(X, X, X)

TRACE_EVENT(conn_end,
	TP_PROTO(const struct sock *sk, const struct mssfrac_conn *conn,
		 const u64 *v),
	TP_ARGS(sk, conn, v),
	TP_STRUCT__entry(
		__field(u64, cookie)
		MSSFRAC_END(MSSFRAC_END_FIELD)
		__array(u8, saddr, 16)
		__array(u8, daddr, 16)
		__field(u16, sport)
		__field(u16, dport)
		__field(u8, arm)
		__field(u8, pinned)
	),
	TP_fast_assign(
		__entry->cookie = atomic64_read(&sk->sk_cookie);
		MSSFRAC_END(MSSFRAC_END_ASSIGN)
		mssfrac_arm_addresses(sk, (struct in6_addr *)__entry->saddr,
				      (struct in6_addr *)__entry->daddr);
		/* inet_num is already 0 if the port was not bound. */
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->arm = conn->arm;
		__entry->pinned = conn->pinned;
	),
	TP_printk("cookie=%llu saddr=%pI6c sport=%u daddr=%pI6c dport=%u arm=%s pinned=%u"
		  MSSFRAC_END(MSSFRAC_END_FORMAT),
		  __entry->cookie, __entry->saddr, __entry->sport,
		  __entry->daddr, __entry->dport, show_arm(__entry->arm),
		  __entry->pinned MSSFRAC_END(MSSFRAC_END_ARG))
);

#endif /* MSSFRAC_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
