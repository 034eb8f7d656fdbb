/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of a socket while its owner works on it: the packet being received,
 * the cause of a transmission, and the packet on its way from TCP to the device
 * (whose address changes there, as TCP sends a clone).  The
 * socket lock orders all writers of one socket.  Two sockets may share an
 * entry: the newer takes it, and a packet forgotten that way is counted.
 */
#ifndef PATHPROF_SOCK_BPF_H
#define PATHPROF_SOCK_BPF_H

#include "compat.bpf.h"
#include "path.bpf.h"

/* A raw or ping socket for ICMP, or the kernel's own? */
static __always_inline bool is_icmp(const struct sock *sk)
{
	return sk->sk_protocol == IPPROTO_ICMP ||
	       sk->sk_protocol == IPPROTO_ICMPV6;
}

struct sock_work socks[SOCKS] __attribute__((aligned(64)));

static __always_inline struct sock_work *sock_slot(__u64 sk)
{
	return &socks[(sk * 0x9e3779b97f4a7c15ULL) >> 54 & (SOCKS - 1)];
}

/* The entry of a socket, taken from another one if need be. */
static __always_inline struct sock_work *sock_work(__u64 sk)
{
	struct sock_work *w = sock_slot(sk);

	if (w->sk != sk) {
		if (w->pending)
			count(CN_SOCK_CLASH);
		__builtin_memset(w, 0, sizeof(*w));
		w->sk = sk;
	}
	return w;
}

/* Has no packets: stands for sockets that have no entry. */
struct sock_work sock_nobody;

/*
 * The entry of a socket if it has one, else that of no socket; read-only.  Not
 * NULL: the compiler would compare sockets again instead of testing for NULL,
 * and the verifier does not follow that.
 */
static __always_inline struct sock_work *sock_known(__u64 sk)
{
	struct sock_work *w = sock_slot(sk);

	return w->sk == sk ? w : &sock_nobody;
}

#endif
