// SPDX-License-Identifier: GPL-2.0-only
/*
 * What became of a packet whose address another one has (bpf/end.bpf.h), and of
 * data that TCP gets ahead of its turn (rx-tcp.bpf.h).
 */
#include "packets.h"

/*
 * Steps: a packet enters the stack, gets its input device, and enters again.
 * Expected: the first path ended there, with its cost; the second is followed.
 */
static void case_again(void)
{
	begin();
	rx_netif(&first);
	first.skb_iif = 3;
	rx_netif(&first);
	report("a bridged packet ends as one that enters again",
	       ended_at(END_REENTERED, ST_RX_AGAIN) && followed(&first) &&
	       ended(PATHPROF_END_MAX) == 1 && balanced());
}

/*
 * Steps: the kernel skips the hooks that would have ended a packet; a second
 * later another packet has its address.  Then a tunnel brings a packet in again
 * after 1 ms.
 * Expected: that second is no work of the first packet; that millisecond is work
 * of the other one.
 */
static void case_skipped(void)
{
	__u64 work_ns = 0;
	int good, i;

	begin();
	config.exits = 1;
	rx_netif(&first);
	clock_ns += 1000000000;
	rx_netif(&first);
	for (i = 0; i < PATH_PATHS; i++)
		work_ns += values[i].work_ns;
	good = ended(END_REENTERED) == 1 && work_ns < 1000;
	begin();
	rx_netif(&first);
	clock_ns += 1000000;
	rx_netif(&first);
	for (work_ns = 0, i = 0; i < PATH_PATHS; i++)
		work_ns += values[i].work_ns;
	config.exits = 0;
	report("the time until an address is used again is no work of a packet",
	       good && ended_at(END_REENTERED, ST_RX_AGAIN) &&
	       work_ns >= 1000000 && balanced());
}

/*
 * Steps: where no functions are hooked, on Linux 6.18, a datagram that was read is
 * followed by a packet of its address: another datagram, a shorter one elsewhere in
 * its buffer, then one that a tunnel had in it; then the first on Linux 6.12, which
 * reports that it was read.
 * Expected: it was used up, but for the tunnel's, and on 6.12.
 */
static void case_datagram_left(void)
{
	__u32 ends[] = { END_CONSUMED, END_CONSUMED, END_REENTERED,
			 END_REENTERED }, i, at;
	__u32 bytes[] = { 10, sizeof(headers) + 22, sizeof(headers) + 22, 10 };
	__u32 last[] = { 100, 100, sizeof(headers) + 16, 100 };
	int good = 1;

	for (i = 0; i < 4; i++) {
		begin();
		LINUX_KERNEL_VERSION = i < 3 ? VERSION(6, 18, 0) :
					       VERSION(6, 12, 0);
		rx_netif(&first);
		at = tracked_lock(address(&first));
		tracked_at(at)->path.flags = PF_UDP | PF_DATA;
		tracked_at(at)->bytes = bytes[i];
		tracked_at(at)->end_seq = last[i];
		tracked_unlock(at, address(&first));
		rx_netif(&first);
		good &= ended(ends[i]) == 1 && ended(PATHPROF_END_MAX) == 1 &&
			balanced();
	}
	LINUX_KERNEL_VERSION = 0;
	report("a datagram whose reading is not reported did not enter again", good);
}

/*
 * Steps: TCP has an ACK, or data, or a reader has copied data that came before
 * the connection was established; another packet of that address enters.
 * Expected, where no functions are hooked: the ACK was used, whatever stage it
 * was in; the data was joined to a packet queued before, or read.
 */
static void case_used(void)
{
	__u32 ends[] = { END_CONSUMED, END_COALESCED, END_DELIVERED };
	__u32 stages[] = { ST_RX_DATA_QUEUE, ST_RX_DATA_QUEUE, ST_RX_COPY };
	__u32 flags[] = { PF_PURE_ACK, PF_DATA, PF_DATA | PF_COPIED }, i, at;
	int good = 1;

	for (i = 0; i < 3; i++) {
		begin();
		rx_netif(&first);
		at = tracked_lock(address(&first));
		tracked_at(at)->sk = i < 2;
		tracked_at(at)->path.flags = flags[i];
		tracked_mark(tracked_at(at), stages[i], ++clock_ns);
		tracked_unlock(at, address(&first));
		rx_netif(&first);
		good &= ended(ends[i]) == 1 && ended(PATHPROF_END_MAX) == 1 &&
			followed(&first) && balanced();
	}
	report("what TCP had is used up if it is an ACK, else joined or read", good);
}

/*
 * Steps: data ahead of its turn arrives where the connection opens, where this end
 * has closed its direction, where it will not read any more, and where the other
 * end has closed.
 * Expected: it is out of order in the first two; the others do not queue it, nor
 * is what the window refuses.
 */
static void case_out_of_order(void)
{
	static const struct {
		__u8 state, shutdown, ooo;
	} in[] = {
		{ TCP_SYN_RECV, 0, 1 }, { TCP_FIN_WAIT2, 2, 1 },
		{ TCP_FIN_WAIT1, 3, 0 }, { 8 /* CLOSE_WAIT */, 0, 0 },
	};
	static struct tcp_sock tp;
	struct sock *sk = (struct sock *)&tp;
	struct tracked_pkt *t;
	int good = 1, i;

	for (i = 0; i < 4; i++) {
		begin();
		sk->__sk_common.skc_state = in[i].state;
		sk->sk_shutdown = in[i].shutdown;
		tp.rcv_nxt = 1000;
		((struct tcp_skb_cb *)first.cb)->seq = 2000;
		rx_netif(&first);
		t = tracked_at(tracked_seek(address(&first)));
		t->path.flags |= PF_DATA;
		rx_state(sk, &first);
		good &= !(t->path.flags & PF_OOO) == !in[i].ooo;
	}
	/* Beyond the window it is refused before it is queued. */
	begin();
	sk->__sk_common.skc_state = TCP_SYN_RECV;
	((struct tcp_skb_cb *)first.cb)->seq = 2000;
	rx_netif(&first);
	tracked_at(tracked_seek(address(&first)))->path.flags |= PF_DATA;
	rx_state(sk, &first);
	packet_end(address(&first), END_DROPPED,
		   SKB_DROP_REASON_TCP_INVALID_SEQUENCE, 1, 1);
	for (i = 0; i < PATH_PATHS; i++)
		good &= !(path_entries[i].key.flags & PF_OOO);
	good &= ended(END_DROPPED) == 1;
	report("data ahead of its turn is out of order where it is queued", good);
}

/*
 * Steps: TCP gets a FIN without data, ahead of its turn.  When its turn comes it is
 * joined to the data before it; or it is not, and another packet gets its address.
 * Then a FIN in its turn, and one where no functions are hooked.
 * Expected: it is joined, or used up: at once in the last two.
 */
static void case_early_fin(void)
{
	static const struct {
		__u32 flags, exits, joined, end, stage;
	} in[] = {
		{ PF_FIN | PF_OOO, 1, 1, END_COALESCED, ST_RX_COALESCED },
		{ PF_FIN | PF_OOO, 1, 0, END_CONSUMED, ST_RX_DONE },
		{ PF_FIN, 1, 0, END_CONSUMED, ST_RX_USED },
		{ PF_FIN | PF_OOO, 0, 0, END_CONSUMED, ST_RX_USED },
	};
	const __u64 sk = 0x4000;
	struct tracked_pkt *t;
	int good = 1, i;
	__u32 at;

	for (i = 0; i < 4; i++) {
		begin();
		config.exits = in[i].exits;
		rx_netif(&first);
		at = tracked_lock(address(&first));
		t = tracked_at(at);
		t->sk = sk;
		t->path.flags = PF_PURE_ACK | PF_EST | in[i].flags;
		tracked_mark(t, ST_RX_SEND_ACK, ++clock_ns);
		tracked_unlock(at, address(&first));
		rx_finish(address(&first), sk, 0);
		good &= ended(PATHPROF_END_MAX) == (i > 1);
		if (in[i].joined)
			packet_end(address(&first), END_COALESCED, 0, 0, 0);
		rx_netif(&first);
		good &= ended_at(in[i].end, in[i].stage) &&
			ended(PATHPROF_END_MAX) == 1 && followed(&first) &&
			balanced();
	}
	config.exits = 0;
	report("a FIN ahead of its turn waits, and is joined or used up", good);
}

/*
 * Steps: where no functions are hooked, a packet enters the stack, and one of its
 * address is dropped: by the host that made it, 10 ms later; at once, as where veth
 * passes the packet on; 10 ms later with an input device; at once, but it is ICMP, or
 * ARP.  Then the first again, where functions are hooked.
 * Expected: the first is another packet, and ICMP and ARP are; the others are the one
 * followed.
 */
static void case_dropped_later(void)
{
	static const struct {
		__u64 later;
		__u32 device, exits, dropped;
		__u16 protocol;
		__u8 carried;
	} in[] = {
		{ 10000000, 0, 0, 0, ETH_P_IP, IPPROTO_TCP },
		{ 10000, 0, 0, 1, ETH_P_IP, IPPROTO_TCP },
		{ 10000000, 3, 0, 1, ETH_P_IP, IPPROTO_TCP },
		{ 10000, 0, 0, 0, ETH_P_IP, IPPROTO_ICMP },
		{ 10000, 0, 0, 0, 0x0806, IPPROTO_TCP },
		{ 10000000, 0, 1, 1, ETH_P_IP, IPPROTO_TCP },
	};
	int good = 1, i;

	for (i = 0; i < 6; i++) {
		begin();
		config.exits = in[i].exits;
		rx_netif(&first);
		clock_ns += in[i].later;
		first.skb_iif = in[i].device;
		first.protocol = bpf_htons(in[i].protocol);
		headers[9] = in[i].carried;
		good &= packet_end(address(&first), END_DROPPED, 8, 0,
				   packet_from(&first)) == (int)in[i].dropped &&
			ended(END_DROPPED) == in[i].dropped &&
			followed(&first) == !in[i].dropped && balanced();
		headers[9] = IPPROTO_TCP;
	}
	config.exits = 0;
	report("what this host made and dropped later is another packet", good);
}

int main(void)
{
	printf("KTAP version 1\n1..7\n");
	case_again();
	case_skipped();
	case_datagram_left();
	case_used();
	case_out_of_order();
	case_early_fin();
	case_dropped_later();
	return failures != 0;
}
