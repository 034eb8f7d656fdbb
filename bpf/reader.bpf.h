/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * With --stages: readers of TCP's data that are not TCP's own.  MPTCP moves
 * packets to a queue of its own, kTLS decrypts them where they are; neither
 * reports that it has read one, but both free it.
 */
#ifndef PATHPROF_READER_BPF_H
#define PATHPROF_READER_BPF_H

#include "compat.bpf.h"
#include "path.bpf.h"
#include "sock.bpf.h"
#include "stack.bpf.h"
#include "tracked.bpf.h"

/* The packet at the head of a socket's receive queue; it is TCP's, locked. */
static __always_inline __u64 queue_head(struct sock *sk)
{
	return address(sk->sk_receive_queue.next);
}

static __always_inline __u8 stage_before(const struct tracked_pkt *t)
{
	return t->path.stages[(t->path.n - 1) & (PATH_STAGES - 1)];
}

/*
 * kTLS decrypts a record that begins in this packet.  Several such records
 * make one stage, and the pauses between them are waiting.
 */
__noinline int record_begin(__u64 key)
{
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_find(key, &at);
	if (!t)
		return 0;
	if (t->last == ST_RX_DONE && stage_before(t) == ST_RX_TLS)
		tracked_again(t, t->path.n - 2, ST_RX_TLS, bpf_ktime_get_ns());
	else
		tracked_mark(t, ST_RX_TLS, bpf_ktime_get_ns());
	tracked_unlock(at, key);
	return 0;
}

__noinline int record_end(__u64 key)
{
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_find(key, &at);
	if (!t)
		return 0;
	if (t->last == ST_RX_TLS)
		tracked_again(t, t->path.n - 1, ST_RX_DONE,
			      bpf_ktime_get_ns());
	tracked_unlock(at, key);
	return 0;
}

/* In place of a packet: tcp_read_done() frees what kTLS has decrypted. */
#define READS_RECORD	1ULL

static __always_inline void records_freed(struct sock *sk)
{
	if (tracked_any())
		sock_work(address(sk))->copy_key = READS_RECORD;
}

static __always_inline void records_gone(struct sock *sk)
{
	struct sock_work *w = sock_known(address(sk));

	if (w->copy_key == READS_RECORD)
		w->copy_key = 0;
}

/* Freed without a tracepoint: by a reader, if it has had a part of it. */
__noinline int reader_freed(__u64 key)
{
	struct tracked_pkt *t;
	__u32 at;

	t = tracked_find(key, &at);
	if (!t)
		return 0;
	if (t->last != ST_RX_COPY &&
	    (t->last != ST_RX_DONE ||
	     READ_ONCE(sock_known(t->sk)->copy_key) != READS_RECORD)) {
		tracked_unlock(at, key);
		return 0;
	}
	tracked_mark(t, ST_RX_READ, bpf_ktime_get_ns());
	path_sum(t, END_DELIVERED);
	tracked_release(at);
	return 0;
}

#endif
