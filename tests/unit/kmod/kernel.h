/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * As much of a kernel as kmod/tx.c and rx.c see, for test_tx.c and test_rx.c: one
 * socket, whose fields the test sets.  Names and units are the kernel's.
 * Script kernel-headers gives this file the name of every header that they include.
 */
#ifndef FAKE_KERNEL_H
#define FAKE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;

#define U8_MAX		UINT8_MAX
#define U16_MAX		UINT16_MAX
#define U32_MAX		UINT32_MAX
#define TCP_RETR2	15

#define READ_ONCE(x)		(x)
#define WRITE_ONCE(x, value)	((x) = (value))
#define EXPORT_SYMBOL_GPL(name)
#define synchronize_rcu()	((void)0)
#define likely(x)		(x)
#define unlikely(x)		(x)
#define min(a, b)		((a) < (b) ? (a) : (b))
#define max(a, b)		((a) > (b) ? (a) : (b))
#define DIV_ROUND_UP(n, d)	(((n) + (d) - 1) / (d))
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define max_t(type, a, b)	max((type)(a), (type)(b))
#define clamp_t(type, value, low, high)	min_t(type, max_t(type, value, low), high)
#define noinline

/* Lists, RCU and counters: one connection, one thread. */
struct hlist_node {};
struct hlist_head {};
typedef struct {
} spinlock_t;
typedef struct {
} seqcount_spinlock_t;
struct rcu_head {};
struct mutex {
	int unused;
};
struct minmax {
	u32 most;
};
struct in6_addr;
typedef struct {
	u64 v;
} u64_stats_t;

#define hash_ptr(pointer, bits)		((void)(pointer), 0)
#define rcu_read_lock_sched()		((void)0)
#define rcu_read_unlock_sched()		((void)0)
#define rcu_read_lock_sched_held()	true
#define hlist_for_each_entry_rcu(entry, head, member, held)	\
	for ((entry) = the_connection(); (entry); (entry) = NULL)

static inline void u64_stats_add(u64_stats_t *count, u64 n)
{
	count->v += n;
}

static inline u64 u64_stats_read(const u64_stats_t *count)
{
	return count->v;
}

/* No sample ever leaves its window. */
static inline void minmax_running_max(struct minmax *m, u32 win, u32 t, u32 meas)
{
	(void)win;
	(void)t;
	m->most = max(m->most, meas);
}

static inline u32 minmax_get(const struct minmax *m)
{
	return m->most;
}

/* What mssfrac_net() and mssfrac_conn_find() give. */
struct net;
struct mssfrac_conn;
static void *the_namespace(void);
static struct mssfrac_conn *the_connection(void);
#define net_generic(net, id)	((void)(net), the_namespace())

#define SK_USER_DATA_PSOCK	4UL
#define RCV_SHUTDOWN		1
#define RB_EMPTY_ROOT(root)	(*(root))

enum { TCP_CA_Open, TCP_CA_Recovery = 3 };
enum { ICSK_TIME_PROBE0 = 3 };
enum { TCP_CHRONO_BUSY = 1, TCP_CHRONO_RWND_LIMITED };

struct sk_buff {
	u32 end_seq;
};
#define TCP_SKB_CB(skb)		(skb)

struct sock {
	struct net *sk_net;
	void *sk_user_data;
	bool can_gso;
	const struct sk_buff *send_head;	/* waits to be sent */
	bool owned;		/* by a user: segments go to the backlog */
	u8 sk_shutdown;
	u32 sk_gso_max_size;	/* bytes */
	int space;		/* bytes; free in the receive buffer */
	int full_space;		/* the same without unread data */
};

struct inet_connection_sock {
	struct sock sk;
	u8 icsk_ca_state;
	u8 icsk_pending;	/* the timer that runs; 0: none */
	u32 icsk_pmtu_cookie;	/* the path MTU */
	const void *icsk_ulp_ops;
	struct {
		u16 rcv_mss;
	} icsk_ack;
	struct {
		bool enabled;
	} icsk_mtup;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u8 repair, chrono_type;
	struct {
		u8 snd_wscale, rcv_wscale;
	} rx_opt;
	bool out_of_order_queue;	/* is it empty? */
	u16 advmss;
	u32 rcv_nxt, rcv_wnd, rcv_ssthresh, window_clamp;
	u32 mss_cache, snd_cwnd, snd_wnd, max_window, packets_out;
	u32 snd_una, snd_nxt, write_seq;
	u32 data_segs_in, data_segs_out;
};

#define tcp_sk(sk)	((struct tcp_sock *)(sk))
#define inet_csk(sk)	((struct inet_connection_sock *)(sk))

static inline struct net *sock_net(const struct sock *sk)
{
	return sk->sk_net;
}

static inline int tcp_space(const struct sock *sk)
{
	return sk->space;
}

static inline int tcp_full_space(const struct sock *sk)
{
	return sk->full_space;
}

static inline bool sock_owned_by_user_nocheck(const struct sock *sk)
{
	return sk->owned;
}

static inline bool sk_can_gso(const struct sock *sk)
{
	return sk->can_gso;
}

static inline const struct sk_buff *tcp_send_head(const struct sock *sk)
{
	return sk->send_head;
}

static inline u32 tcp_snd_cwnd(const struct tcp_sock *tp)
{
	return tp->snd_cwnd;
}

static inline u32 tcp_wnd_end(const struct tcp_sock *tp)
{
	return tp->snd_una + tp->snd_wnd;
}

static inline bool before(u32 a, u32 b)
{
	return (int32_t)(a - b) < 0;
}

static inline bool after(u32 a, u32 b)
{
	return before(b, a);
}

#endif /* FAKE_KERNEL_H */
