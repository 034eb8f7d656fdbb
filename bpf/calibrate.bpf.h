/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The time that pathprof itself takes between the clocks of two stages,
 * measured on a packet that does not exist, before any hook is attached.  The
 * minimum of many rounds is used, so that interrupts are no part of it.
 */
#ifndef PATHPROF_CALIBRATE_BPF_H
#define PATHPROF_CALIBRATE_BPF_H

#include "compat.bpf.h"
#include "tracked.bpf.h"
#include "tx.bpf.h"

#define PROBE_ROUNDS	512
#define PROBE_KEY	0x40ULL	/* no packet has this address */

/* Instructions of the programs; getting there and back is not in it. */
struct probe_costs probe;
static struct sock_work probe_work = { .origin = ST_TX_ACKED };

static __always_inline void least(__u64 *to, __u64 ns)
{
	if (ns < *to)
		*to = ns;
}

/* A stage of a packet that is followed. */
static int probe_follow(__u32 round, void *at)
{
	struct tracked_pkt *t = tracked_at(*(__u32 *)at);
	__u64 begin = bpf_ktime_get_ns(), end;

	(void)round;
	follow(PROBE_KEY, ST_RX_IP, 0, 0);
	end = bpf_ktime_get_ns();
	least(&probe.head, t->last_ns - begin);
	least(&probe.tail, end - t->last_ns);
	end = bpf_ktime_get_ns();
	least(&probe.clock, bpf_ktime_get_ns() - end);
	/* The next one is a new stage again, and there is room for it. */
	t->last = ST_RX_NETIF;
	t->path.n = 1;
	return 0;
}

/* The device gets a packet that TCP announced. */
static int probe_claim(__u32 round, void *unused)
{
	__u64 begin = bpf_ktime_get_ns();
	struct tracked_pkt *t;
	__u32 at;

	(void)round;
	(void)unused;
	t = tx_take(PROBE_KEY, &probe_work, ST_TX_DEV, &at);
	if (!t)
		return 1;
	least(&probe.claim, t->last_ns - begin);
	tracked_release(at);
	return 0;
}

/*
 * All zero if it cannot be done.  Each time has half a clock read too much at
 * either end.
 */
static __always_inline void probe_measure(void)
{
	__u32 at = tracked_new(PROBE_KEY);

	if (at == NOT_TRACKED)
		return;
	probe = (struct probe_costs){ ~0ULL, ~0ULL, ~0ULL, ~0ULL };
	tracked_init(tracked_at(at), DIR_RX, ST_RX_NETIF, 0);
	tracked_unlock(at, PROBE_KEY);
	bpf_loop(PROBE_ROUNDS, probe_follow, &at, 0);
	at = tracked_lock(PROBE_KEY);
	if (at != NOT_TRACKED)
		tracked_release(at);
	bpf_loop(PROBE_ROUNDS, probe_claim, 0, 0);
	probe.head -= probe.clock / 2;
	probe.tail -= probe.clock / 2;
	probe.claim -= probe.clock / 2;
}

#endif
