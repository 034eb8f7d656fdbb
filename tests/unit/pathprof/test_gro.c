// SPDX-License-Identifier: GPL-2.0-only
/*
 * pathprof's hooks where packets enter the stack and leave it (bpf/rx.bpf.h,
 * tx.bpf.h), compiled for this machine.  Hooks come and go while a CPU is inside
 * the driver's call, so an entry or a return may be missing; a packet enters
 * twice, or another one has its address.  No packet may be counted twice, or
 * end as another one.  A hook whose packet is gone may not lock the entry of the
 * next one, whose own hooks would not find it meanwhile.
 */
#include "packets.h"

/*
 * Steps: GRO holds a packet, and merges the next one into it.
 * Expected: the second has ended, as merged; the first is followed.
 */
static void case_merged(void)
{
	begin();
	rx_gro(&first, rx_linear(&first));
	rx_gro_result(HELD);
	rx_gro(&second, rx_linear(&second));
	rx_gro_result(MERGED);
	report("a merged packet ends, the one it was merged into does not",
	       ended(END_MERGED) == 1 && ended(PATHPROF_END_MAX) == 1 &&
	       followed(&first) && !followed(&second) && balanced());
}

/*
 * Steps: a packet is followed; on a CPU that has passed no GRO hook so far, a
 * call returns whose entry was not hooked yet.
 * Expected: nothing has ended.
 */
static void case_no_entry(void)
{
	begin();
	rx_gro(&first, rx_linear(&first));
	memset(&work, 0, sizeof(work));	/* of another CPU */
	rx_gro_result(MERGED);
	report("a call that began before the hooks ends no packet",
	       !ended(PATHPROF_END_MAX) && followed(&first) && balanced());
}

/*
 * Steps: GRO holds a packet; the entry's hook is detached, the next packet is
 * merged into the first one, and the hook of the return is still there.
 * Expected: the first is followed.
 */
static void case_entry_detached(void)
{
	begin();
	rx_gro(&first, rx_linear(&first));
	rx_gro_result(HELD);
	rx_gro_result(MERGED);
	report("a call whose entry was not seen does not end the packet before",
	       !ended(PATHPROF_END_MAX) && followed(&first) && balanced());
}

/*
 * Steps: a driver gives GRO fragments, with all headers in the first one; then with
 * the headers before the fragments.
 * Expected: either packet is followed from GRO on; the second, merged, ends so.
 */
static void case_fragments(void)
{
	struct napi_gro_cb *cb = (void *)first.cb;
	int good;

	begin();
	first.data = NULL;
	first.data_len = first.len;
	cb->frag0 = headers;
	cb->frag0_len = sizeof(headers);
	rx_gro(&first, rx_in_fragment(&first));
	rx_gro_result(HELD);
	good = followed(&first) &&
	       tracked_at(tracked_seek(address(&first)))->last == ST_RX_GRO;
	rx_gro(&second, rx_in_fragment(&second));
	rx_gro_result(MERGED);
	report("packets in fragments are followed from GRO on",
	       good && ended(END_MERGED) == 1 && followed(&first) &&
	       balanced());
}

static void forward(int rc)
{
	begin();
	rx_netif(&first);
	first.skb_iif = 3;
	tx_dev(&first);
	tx_start(address(&first) | KEY_TX);
	tx_sent(address(&first) | KEY_TX, rc);
}

/*
 * Expected: one path, of a received packet, with the driver's verdict.
 */
static void case_forwarded(void)
{
	int good;

	forward(0);
	good = ended_at(END_FORWARDED, ST_TX_SENT) && balanced();
	forward(NET_XMIT_CN);
	good &= ended_at(END_FORWARDED, ST_TX_SENT) && balanced();
	forward(1);
	good &= ended_at(END_DROPPED, ST_DROP) && balanced();
	report("a forwarded packet ends at the driver, as it says", good);
}

/*
 * Steps: the packet is dropped while the driver's call has not returned: by a
 * receiver, which it has reached; by the driver.
 * Expected: the sender's path ends at the call's return; at the drop.
 */
static void case_driver(void)
{
	int good;

	begin();
	tx_dev(&first);
	tx_start(address(&first) | KEY_TX);
	packet_end(address(&first), END_DROPPED, 2, 7, 1);
	good = !ended(PATHPROF_END_MAX);
	tx_sent(address(&first) | KEY_TX, 0);
	good &= ended_at(END_SENT, ST_TX_SENT) && balanced();
	begin();
	tx_dev(&first);
	tx_start(address(&first) | KEY_TX);
	packet_end(address(&first), END_DROPPED, 2, 7, 0);
	tx_sent(address(&first) | KEY_TX, 1);
	good &= ended_at(END_DROPPED, ST_DROP) &&
		ended(PATHPROF_END_MAX) == 1 && balanced();
	report("a driver's drop is one, a receiver's is not the sender's", good);
}

/* The hooks of a socket that remembers the address of `first`. */
static void outdated(__u64 sk)
{
	sock_work(sk)->rx_key = address(&first);
	sock_work(sk)->copy_key = address(&first);
	locks = 0;
	rx_finish(address(&first), sk, 0);
	rx_sock_stage((struct sock *)sk, ST_RX_READY);
	rx_read((struct sock *)sk);
}

/*
 * Steps: TCP has used a packet up and freed it; before the hook of TCP's return
 * runs, another packet that enters the stack has the address.
 * Expected: the hooks of the socket leave the entry of that packet unlocked.
 */
static void case_outdated_socket(void)
{
	const __u64 sk = 0x4000;
	__u32 at;
	int good;

	begin();
	rx_netif(&first);
	outdated(sk);
	report("a socket's hooks do not lock a packet that is not its own",
	       !locks && followed(&first) && !ended(PATHPROF_END_MAX) &&
	       balanced());
	/* Its own, but the next one, which waits for the socket. */
	follow(address(&first), ST_RX_SOCK, 0, 0);
	at = tracked_seek(address(&first));
	tracked_at(at)->sk = sk;
	outdated(sk);
	good = !locks && tracked_at(at)->last == ST_RX_SOCK;
	follow(address(&first), ST_RX_BACKLOG, 0, 0);
	outdated(sk);
	report("a socket's hooks do not lock its next packet, which waits for it",
	       good && !locks && tracked_at(at)->last == ST_RX_BACKLOG &&
	       balanced());
}

/*
 * Steps: a packet is with its receiver, which frees it, while the driver's call
 * of the sender has not returned.
 * Expected: freeing it locks the receiver's entry only.
 */
static void case_sender_unlocked(void)
{
	begin();
	tx_dev(&first);
	tx_start(address(&first) | KEY_TX);
	locks = 0;
	packet_end(address(&first), END_CONSUMED, 0, 0, 1);
	report("a receiver does not lock the sender's entry",
	       !locks && !ended(PATHPROF_END_MAX) && balanced());
}

/*
 * Steps: a queue without a lock reports a packet after the driver has got it.
 * Expected: the packet is with the driver, whose return ends its path.
 */
static void case_queued_late(void)
{
	begin();
	tx_dev(&first);
	tx_start(address(&first) | KEY_TX);
	tx_queued(address(&first) | KEY_TX);
	tx_sent(address(&first) | KEY_TX, 0);
	report("a queue's late report does not take a packet from the driver",
	       ended_at(END_SENT, ST_TX_SENT) && balanced());
}

/*
 * Steps: a receiver joins data, while a sent packet that had the address is still
 * followed, before its driver.
 * Expected: what was received ends as joined; the other is still followed.
 */
static void case_joined(void)
{
	begin();
	tx_dev(&first);
	rx_netif(&first);
	packet_end(address(&first), END_COALESCED, 0, 0, 1);
	report("joined data is the receiver's",
	       ended(END_COALESCED) == 1 && ended(PATHPROF_END_MAX) == 1 &&
	       tracked_seek(address(&first) | KEY_TX) != NOT_TRACKED &&
	       balanced());
}

/*
 * Steps: the receiver has freed the packet, and its address is that of a packet
 * which another CPU hands to its driver, when the first driver's call returns.
 * Expected: the second packet is followed until its own driver's call returns,
 * and both are sent.
 */
static void case_address_sent_again(void)
{
	int good;

	begin();
	tx_dev(&first);
	tx_start(address(&first) | KEY_TX);
	this_cpu = 1;
	tx_leftover(address(&first) | KEY_TX);
	good = ended_at(END_SENT, ST_TX_SENT);
	tx_dev(&first);
	tx_start(address(&first) | KEY_TX);
	this_cpu = 0;
	locks = 0;
	tx_sent(address(&first) | KEY_TX, 0);
	good &= !locks && ended(PATHPROF_END_MAX) == 1;
	this_cpu = 1;
	tx_sent(address(&first) | KEY_TX, 0);
	this_cpu = 0;
	report("a driver's return does not end a packet of another CPU",
	       good && ended(END_SENT) == 2 && balanced());
}

/*
 * Steps: GRO has merged a packet and freed it; before the hook of its return
 * runs, another packet has the address, and another CPU hands that to GRO.
 * Expected: both calls end their own packet, each as merged.
 */
static void case_merged_address(void)
{
	struct cpu_work one, other;
	int good;

	begin();
	rx_gro(&first, rx_linear(&first));
	one = work;
	rx_gro(&first, rx_linear(&first));
	good = ended(END_MERGED) == 1;
	other = work;
	work = one;
	locks = 0;
	rx_gro_result(MERGED);
	good &= !locks && followed(&first) && ended(END_MERGED) == 1;
	work = other;
	rx_gro_result(MERGED);
	report("GRO's return does not end a packet of another CPU",
	       good && ended(END_MERGED) == 2 && balanced());
}

/*
 * Steps: GRO merges a packet, and delivers the one it was merged into, which a
 * device splits and frees, as a drop or as used; then GRO's call returns.  The
 * same for a packet that the backlog of RPS refuses within the call, and for one
 * that is freed after it.
 * Expected: each ends once; the first two as merged, the others as dropped.
 */
static void case_merged_and_freed(void)
{
	int good;

	begin();
	rx_gro(&first, rx_linear(&first));
	packet_end(address(&first), END_DROPPED, SKB_DROP_REASON_NOT_SPECIFIED,
		   7, FROM_DEVICE);
	rx_gro_result(MERGED);
	good = ended_at(END_MERGED, ST_RX_MERGED) && balanced();
	begin();
	rx_gro(&first, rx_linear(&first));
	packet_end(address(&first), END_CONSUMED, 0, 0, FROM_DEVICE);
	rx_gro_result(MERGED);
	good &= ended_at(END_MERGED, ST_RX_MERGED) && balanced();
	report("a packet that is freed while GRO merges it is merged", good);
	begin();
	rx_gro(&first, rx_linear(&first));
	packet_end(address(&first), END_DROPPED,
		   SKB_DROP_REASON_NOT_SPECIFIED + 1, 7, FROM_DEVICE);
	rx_gro_result(HELD);
	good = ended_at(END_DROPPED, ST_DROP) && balanced();
	begin();
	rx_gro(&first, rx_linear(&first));
	rx_gro_result(HELD);
	packet_end(address(&first), END_DROPPED, SKB_DROP_REASON_NOT_SPECIFIED,
		   7, FROM_DEVICE);
	report("other packets that GRO had are dropped",
	       good && ended_at(END_DROPPED, ST_DROP) && balanced());
}

/*
 * Steps: TCP has announced a packet; before that gets to its device, a bridge
 * sends on, or drops, an earlier packet, which still has the same socket.
 * Expected: the earlier packet's path goes on, or ends as received; the next
 * one that has not come in is the announced one.
 */
static void case_announced(void)
{
	struct sock sk = {};
	struct sock_work *w;
	int good;

	config.transmits = 1;
	begin();
	rx_netif(&first);
	first.sk = &sk;
	first.skb_iif = 3;
	w = sock_work(address(&sk));
	*w = (struct sock_work){
		.sk = address(&sk), .pending = 1, .origin = ST_TX_WRITE,
		.segments = 1,
	};
	count(CN_SAMPLED);
	tx_dropped(&first, 2, 7);
	tx_dev(&first);
	good = w->pending && !ended(PATHPROF_END_MAX);
	tx_start(address(&first) | KEY_TX);
	tx_sent(address(&first) | KEY_TX, 0);
	good &= ended_at(END_FORWARDED, ST_TX_SENT);
	second.sk = &sk;
	tx_dev(&second);
	good &= !w->pending;
	tx_start(address(&second) | KEY_TX);
	tx_sent(address(&second) | KEY_TX, 0);
	config.transmits = 0;
	report("a packet that came in is not the one that TCP announced",
	       good && ended_at(END_SENT, ST_TX_SENT) && balanced());
}

/*
 * Steps: while the CPU that queued a datagram notes that it woke the reader, the
 * reader on another CPU has copied and freed it.
 * Expected: the packet ends as read, once, when that hook is done; a hook that
 * nobody disturbed leaves it waiting.
 */
static void case_left_to_writer(void)
{
	__u32 at;
	int good;

	begin();
	rx_netif(&first);
	at = tracked_lock(address(&first));
	tracked_at(at)->sk = 1;
	tracked_at(at)->path.flags = PF_UDP | PF_DATA;
	tracked_mark(tracked_at(at), ST_RX_READY, ++clock_ns);
	first.users.refs.counter = 1;
	udp_read(&first);
	good = !ended(PATHPROF_END_MAX);
	rx_yield(address(&first), at);
	good &= ended_at(END_DELIVERED, ST_RX_FREE) && !followed(&first) &&
		balanced();
	/* Reported twice, and the hook that holds it ends it in its own way. */
	begin();
	rx_netif(&first);
	at = tracked_lock(address(&first));
	good &= !tracked_hand(address(&first), END_CONSUMED) &&
		!tracked_hand(address(&first), END_CONSUMED);
	path_sum(tracked_at(at), END_DELIVERED);
	tracked_release(at);
	good &= ended(END_DELIVERED) == 1 && !followed(&first) && balanced();
	begin();
	rx_netif(&first);
	at = tracked_lock(address(&first));
	rx_yield(address(&first), at);
	report("a datagram ends that is read while its reader is woken",
	       good && followed(&first) && !ended(PATHPROF_END_MAX));
}

int main(void)
{
	printf("KTAP version 1\n1..17\n");
	case_left_to_writer();
	case_joined();
	case_queued_late();
	case_merged();
	case_merged_address();
	case_merged_and_freed();
	case_announced();
	case_no_entry();
	case_entry_detached();
	case_fragments();
	case_forwarded();
	case_driver();
	case_outdated_socket();
	case_sender_unlocked();
	case_address_sent_again();
	return failures != 0;
}
