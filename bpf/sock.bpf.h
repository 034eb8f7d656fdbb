/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is known of a socket while its owner works on it: the packet being
 * received, who asked for transmission, and the packet handed from TCP to
 * IP (whose address changes there, as TCP sends a clone).  The socket lock
 * orders all writers of one socket.  Two sockets may share an entry: the
 * newer takes it, and a packet forgotten that way is counted.
 */
#ifndef PATHPROF_SOCK_BPF_H
#define PATHPROF_SOCK_BPF_H

#include "flight.bpf.h"

struct sock_work socks[SOCKS];
/* Takes what is written after the end. */
struct sock_work sock_nobody;

/* The entry of a socket, taken from another one if need be. */
static __always_inline struct sock_work *sock_work(struct sock *sk)
{
	__u64 key = address(sk);
	struct sock_work *w;

	if (flights_frozen())
		return &sock_nobody;
	w = &socks[(key * 0x9e3779b97f4a7c15ULL) >> 54 & (SOCKS - 1)];
	if (w->sk != key) {
		if (w->pending)
			count(CN_SOCK_CLASH);
		__builtin_memset(w, 0, sizeof(*w));
		w->sk = key;
	}
	return w;
}

static __always_inline void sock_origin(struct sock *sk, __u8 stage)
{
	struct sock_work *w = sock_work(sk);

	w->origin = stage;
	w->push = 0;
	w->origin_ns = 0;
}

static __always_inline void sock_rx_begin(struct sock *sk, __u64 key)
{
	struct sock_work *w = sock_work(sk);

	w->rx_key = key;
	w->outer_origin = w->origin;
	w->origin = ST_TX_ACKED;
	w->origin_ns = 0;
}

static __always_inline void sock_rx_end(struct sock *sk)
{
	struct sock_work *w = sock_work(sk);

	w->rx_key = 0;
	w->origin = w->outer_origin;
	w->origin_ns = 0;
}

static __always_inline __u64 sock_rx_packet(struct sock *sk)
{
	return sock_work(sk)->rx_key;
}

#endif
