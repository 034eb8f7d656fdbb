// SPDX-License-Identifier: GPL-2.0-only
/*
 * What pathprof --stages does where a packet's identity could be lost
 * (bpf/identity.bpf.h, datagram.bpf.h, forward.bpf.h, reader.bpf.h, xdp.bpf.h),
 * compiled for this machine: another buffer, another reader, another CPU, a
 * program that copies.  No packet may be counted twice, or be lost.
 */
#include "bpf.h"
#include "../../../bpf/datagram.bpf.h"
#include "../../../bpf/extensions.bpf.h"
#include "../../../bpf/forward.bpf.h"
#include "../../../bpf/identity.bpf.h"
#include "../../../bpf/reader.bpf.h"
#include "../../../bpf/stack.bpf.h"
#include "../../../bpf/xdp.bpf.h"

static struct cpu_work work;
static struct counts counted;
static struct path_value values[PATH_PATHS];
static __u64 in_hand;

static void *bpf_map_lookup_elem(void *map, const void *key)
{
	__u32 at = *(const __u32 *)key;

	if (map == &cpu_works)
		return &work;
	if (map == &counts)
		return &counted;
	if (map == &xdp_in_hand)
		return &in_hand;
	return map == &path_values && at < PATH_PATHS ? &values[at] : NULL;
}

static unsigned char headers[40] = {
	0x45, 0, 0, 40, [9] = IPPROTO_TCP, [32] = 0x50, [33] = 0x10,
};
static struct net_device dev;
static struct sock sock = { .sk_protocol = IPPROTO_UDP };
/* Each where a packet may be: keys are addresses, aligned as in the kernel. */
static struct sk_buff first __attribute__((aligned(256)));
static struct sk_buff second __attribute__((aligned(256)));
static int cases, failures;

static void report(const char *name, int passed)
{
	printf("%sok %d %s\n", passed ? "" : "not ", ++cases, name);
	failures += !passed;
}

/* Packets of the paths with this end and these stages, which 0 ends. */
static __u64 ended(__u32 end, const __u8 *stages)
{
	const struct path_key *k;
	__u64 n = 0;
	int i;

	for (i = 0; i < PATH_PATHS; i++) {
		k = &path_entries[i].key;
		if (path_entries[i].state == PATH_USED && k->end == end &&
		    !memcmp(k->stages, stages, k->n) && !stages[k->n])
			n += values[i].packets;
	}
	return n;
}

static __u64 followed(void)
{
	__u64 n = 0;
	int i;

	for (i = 0; i < TRACKED_MAX; i++)
		n += tracked_keys[i] != 0;
	return n;
}

/* The account: as many sampled as have ended or are followed. */
static int balanced(void)
{
	__u64 n = followed();
	int i;

	for (i = 0; i < PATH_PATHS; i++)
		if (path_entries[i].state == PATH_USED)
			n += values[i].packets;
	return counted.counters[CN_SAMPLED] == n;
}

static void begin(void)
{
	struct sk_buff *skbs[] = { &first, &second };
	int i;

	memset(&work, 0, sizeof(work));
	memset(&counted, 0, sizeof(counted));
	memset(values, 0, sizeof(values));
	memset(path_entries, 0, sizeof(path_entries));
	memset(tracked_keys, 0, sizeof(tracked_keys));
	memset(socks, 0, sizeof(socks));
	tracked_count = 0;
	in_hand = 0;
	enabled = true;
	for (i = 0; i < 2; i++)
		*skbs[i] = (struct sk_buff){
			.dev = &dev, .data = headers, .head = headers,
			.len = sizeof(headers),
			.protocol = bpf_htons(ETH_P_IP),
		};
}

/* Stages of a packet; the last one is the compiler's 0. */
#define STAGES(...) ((const __u8[PATH_STAGES + 1]){ __VA_ARGS__ })

/* Steps: one chain of extension headers after another. */
static void case_extensions(void)
{
	/* Hop-by-hop of 16 bytes, authentication of 24, first fragment, TCP. */
	unsigned char p[40 + 16 + 24 + 8] = {
		0x60, [6] = 0, [40] = 51, [41] = 1, [56] = 44, [57] = 4,
		[80] = IPPROTO_TCP, [83] = 1,
	};
	__u64 ip = (__u64)(unsigned long)p;
	int good;

	good = ipv6_transport(ip, sizeof(p)) ==
	       (int)(sizeof(p) | IPPROTO_TCP << 16);
	good &= !ipv6_transport(ip, sizeof(p) - 1);
	p[83] = 9;
	good &= ipv6_transport(ip, sizeof(p)) == IPV6_LATER;
	p[6] = IPPROTO_UDP;
	good &= ipv6_transport(ip, sizeof(p)) == (40 | IPPROTO_UDP << 16);
	report("extension headers of IPv6 lead to TCP, or to none", good);
}

/*
 * Steps: a received packet goes on in another buffer; then what has no entry, an
 * error, and the same buffer.
 * Expected: one path, whose stages go on there.
 */
static void case_moves(void)
{
	int good;

	begin();
	stack_netif(&first);
	stack_moves(address(&first), address(&second));
	stack_moves(address(&first), address(&second));
	stack_moves(address(&second), (__u64)-12);
	stack_moves(address(&second), address(&second));
	good = followed() == 1 && tracked_count == 1;
	follow_end(address(&second), ST_RX_FREE, END_CONSUMED);
	good &= ended(END_CONSUMED, STAGES(ST_RX_NETIF, ST_RX_FREE)) == 1 &&
		balanced();
	report("a packet goes on in another buffer", good);
}

/*
 * Steps: the buffer that a packet goes on in had another packet, whose end was
 * not seen.
 * Expected: that one ends, as stale.
 */
static void case_taken(void)
{
	int good;

	begin();
	stack_netif(&first);
	stack_netif(&second);
	stack_moves(address(&first), address(&second));
	good = ended(END_STALE, STAGES(ST_RX_NETIF)) == 1 && followed() == 1;
	report("one that was in that buffer before ends", good && balanced());
}

/*
 * Steps: a datagram is written and sent; another one without a write that was
 * seen.
 * Expected: each has one path, from where it was seen first; the device does not
 * choose it again.
 */
static void case_datagram(void)
{
	int good;

	begin();
	first.sk = second.sk = &sock;
	datagram_write(&sock);
	datagram_fill(&first);
	datagram_fill(&first);
	datagram_v4(&first, NULL, NULL);
	stack_dev(&first);
	good = counted.counters[CN_SAMPLED] == 1;
	follow_end(address(&first), ST_TX_SENT, END_SENT);
	good &= ended(END_SENT, STAGES(ST_TX_SEND, ST_TX_FILL, ST_TX_UDP,
				       ST_TX_DEV, ST_TX_SENT)) == 1;
	datagram_v4(&second, NULL, NULL);
	follow_end(address(&second), ST_TX_SENT, END_SENT);
	good &= ended(END_SENT, STAGES(ST_TX_UDP, ST_TX_SENT)) == 1;
	report("a datagram's path begins with its write", good && balanced());
}

/* A packet of TCP's receive queue, at `skb`. */
static void queued(struct sk_buff *skb)
{
	struct tracked_pkt *t;
	__u32 at;

	stack_netif(skb);
	t = tracked_find(address(skb), &at);
	t->sk = address(&sock);
	t->path.flags |= PF_DATA;
	tracked_mark(t, ST_RX_DONE, bpf_ktime_get_ns());
	tracked_unlock(at, address(skb));
}

/*
 * Steps: kTLS decrypts two records that begin in one packet, and frees it with
 * the next one, in which the second record ends; then it frees one that it has
 * not read.
 * Expected: both are delivered, with the time of the records in one stage; the
 * third one is still followed.
 */
static void case_records(void)
{
	int good, i;

	begin();
	queued(&first);
	queued(&second);
	for (i = 0; i < 2; i++) {
		record_begin(address(&first));
		record_end(address(&first));
	}
	records_freed(&sock);
	reader_freed(address(&first));
	reader_freed(address(&second));
	rx_read(&sock);
	records_gone(&sock);
	good = ended(END_DELIVERED, STAGES(ST_RX_NETIF, ST_RX_DONE, ST_RX_TLS,
					   ST_RX_READ)) == 1 &&
	       ended(END_DELIVERED, STAGES(ST_RX_NETIF, ST_RX_DONE,
					   ST_RX_READ)) == 1;
	queued(&first);
	reader_freed(address(&first));
	good &= followed() == 1;
	report("what kTLS has read is delivered, other frees are not",
	       good && balanced());
}

/*
 * Steps: native XDP copies the packet and passes the copy; drops one; sends one
 * elsewhere, which it frees as if it were used.
 * Expected: the copy goes on as the same packet; each other one has its end.
 */
static void case_native(void)
{
	int good;

	begin();
	stack_netif(&first);
	follow(address(&first), ST_XDP_NATIVE, 0, 0);
	stack_end(address(&first), END_CONSUMED, 0, 0);
	xdp_native_done(&first, &second);
	stack_end(address(&second), END_DROPPED, 5, 0);
	xdp_native_done(&second, NULL);
	good = ended(END_DROPPED, STAGES(ST_RX_NETIF, ST_XDP_NATIVE,
					 ST_DROP)) == 1 && !followed();
	stack_netif(&first);
	follow(address(&first), ST_XDP_NATIVE, 0, 0);
	stack_end(address(&first), END_CONSUMED, 0, 0);
	xdp_native_done(&first, NULL);
	good &= ended(END_FORWARDED, STAGES(ST_RX_NETIF, ST_XDP_NATIVE,
					    ST_XDP_REDIRECT)) == 1;
	report("the verdict of native XDP is the packet's end",
	       good && balanced());
}

/*
 * Steps: generic XDP copies the packet, and redirects the copy to an AF_XDP
 * socket.
 * Expected: one path, delivered there.
 */
static void case_generic(void)
{
	int good;

	begin();
	stack_netif(&first);
	xdp_generic(1, address(&first));
	stack_end(address(&first), END_CONSUMED, 0, 0);
	xdp_generic_runs(&second);
	follow(address(&second), ST_XDP_REDIRECT, 0, 0);
	xdp_to_socket(0);
	follow(address(&second), ST_XSK, PF_DATA, 0);
	stack_end(address(&second), END_CONSUMED, 0, 0);
	xdp_generic_done(address(&second), 1);
	good = ended(END_DELIVERED, STAGES(ST_RX_NETIF, ST_XDP_GENERIC,
					   ST_XDP_REDIRECT, ST_XSK,
					   ST_RX_FREE)) == 1 && !followed();
	report("an AF_XDP socket has a packet delivered", good && balanced());
}

/*
 * Steps: connection tracking, within a hook of netfilter, calls a function that
 * --stage names.
 * Expected: after each return the packet is in the stage that called.
 */
static void case_calls(void)
{
	__u64 key = address(&first);
	int good;

	begin();
	stack_netif(&first);
	follow(key, ST_NF_PRE, 0, 0);
	stage_call(key, ST_CONNTRACK);
	stage_call(key, ST_USER);
	stage_return(key, ST_USER);
	good = tracked_at(tracked_seek(key))->last == ST_CONNTRACK;
	stage_return(key, ST_CONNTRACK);
	good &= tracked_at(tracked_seek(key))->last == ST_NF_PRE;
	stack_end(key, END_CONSUMED, 0, 0);
	report("a call within a call returns to the stage that called it",
	       good && ended(END_FREED, STAGES(ST_RX_NETIF, ST_NF_PRE,
					       ST_CONNTRACK, ST_USER,
					       ST_CONNTRACK, ST_NF_PRE,
					       ST_TX_FREE)) == 1 &&
	       balanced());
}

/*
 * Steps: a function that --stage names is called without a packet, while another
 * packet is followed.
 * Expected: no entry is locked: 0 is the key of an unused one.
 */
static void case_no_packet(void)
{
	begin();
	stack_netif(&first);
	locks = 0;
	stage_call(0, ST_USER);
	stage_return(0, ST_USER);
	report("a function without a packet is in no path",
	       !locks && followed() == 1 && balanced());
}

/*
 * Steps: a packet is given to a worker of WireGuard that waits for its CPU, and
 * then to one that has begun before the function that calls it returns.
 * Expected: that return locks nothing, as hooks of the worker would not find the
 * packet meanwhile.  The first one waited from that return on, the other not.
 */
static void case_workers(void)
{
	__u64 key = address(&first), handed;
	struct tracked_pkt *t;
	int good;

	begin();
	stack_netif(&first);
	t = tracked_at(tracked_seek(key));
	follow(key, ST_DECAP, 0, 0);
	locks = 0;
	stage_handed(key, ST_DECAP);
	good = !locks && t->last == ST_DECAP;
	handed = clock_ns;
	crypt_begin(key);
	good &= t->stage_ns[2] == clock_ns - handed;
	stage_from(key, ST_CRYPT, ST_CRYPT_WAIT);
	follow(key, ST_ENCAP, 0, 0);
	crypt_begin(key);
	stage_handed(key, ST_ENCAP);
	good &= !t->stage_ns[6] && t->last == ST_CRYPT;
	stack_end(key, END_CONSUMED, 0, 0);
	report("a packet waits for a worker from when it was given to it",
	       good && ended(END_FREED, STAGES(ST_RX_NETIF, ST_DECAP,
					       ST_CRYPT_WAIT, ST_CRYPT,
					       ST_CRYPT_WAIT, ST_ENCAP,
					       ST_CRYPT_WAIT, ST_CRYPT,
					       ST_TX_FREE)) == 1 &&
	       balanced());
}

/*
 * Steps: a packet ends after it was given to a worker; another one at its address
 * meets a worker that has begun before the function that calls it returns.
 * Expected: the other one has no wait, although its entry has the first one's clock.
 */
static void case_worker_of_another(void)
{
	__u64 key = address(&first);
	struct tracked_pkt *t;

	begin();
	stack_netif(&first);
	follow(key, ST_DECAP, 0, 0);
	stage_handed(key, ST_DECAP);
	stack_end(key, END_CONSUMED, 0, 0);
	stack_netif(&first);
	follow(key, ST_DECAP, 0, 0);
	t = tracked_at(tracked_seek(key));
	crypt_begin(key);
	report("the clock of a packet before is no wait of this one",
	       t->handed_ns && !t->stage_ns[2] && t->last == ST_CRYPT &&
	       balanced());
}

int main(void)
{
	printf("KTAP version 1\n1..11\n");
	case_extensions();
	case_moves();
	case_taken();
	case_datagram();
	case_records();
	case_native();
	case_generic();
	case_calls();
	case_no_packet();
	case_workers();
	case_worker_of_another();
	return failures != 0;
}
