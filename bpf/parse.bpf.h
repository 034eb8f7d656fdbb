/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Headers of a packet, read once and in one piece: the fields the filter needs,
 * the payload's length, and the TCP fields that header prediction will test.
 */
#ifndef PATHPROF_PARSE_BPF_H
#define PATHPROF_PARSE_BPF_H

#include "compat.bpf.h"
#include "config.bpf.h"
#include "extensions.bpf.h"
#include "filter.bpf.h"
#include "path.bpf.h"

#define TCPH_FIN	0x01
#define TCPH_SYN	0x02
#define TCPH_RST	0x04
#define TCPOPT_ALIGNED_TS 0x0101080aU	/* NOP NOP, timestamp, 10 bytes */

struct headers {
	__u32 payload;
	__u32 flags;
	__u32 word;		/* fourth of the TCP header, network order */
	__u32 seq;
	__u32 tsval;
	__u16 port;		/* the lower one, if groups are kept */
	__u8 has_ts;		/* 20 bytes, and the aligned timestamp */
	__u8 family;
	__u8 udp;
	__u8 unmatched;		/* by the filter for ports and addresses */
	__u8 later;		/* a fragment that is not the first */
	__u8 icmp;
};

static __always_inline __u32 tcp_flags_of(__u8 bits, __u32 payload)
{
	__u32 flags = payload ? PF_DATA : PF_PURE_ACK;

	if (bits & (TCPH_SYN | TCPH_FIN | TCPH_RST)) {
		if (bits & TCPH_SYN)
			flags |= PF_SYN;
		if (bits & TCPH_FIN)
			flags |= PF_FIN;
		if (bits & TCPH_RST)
			flags |= PF_RST;
	}
	return flags;
}

/* `icmp`: the number of ICMP in this version of IP. */
static __always_inline bool wanted_proto(__u8 proto, __u8 icmp,
					 struct headers *h)
{
	h->udp = proto == IPPROTO_UDP;
	if (proto == IPPROTO_TCP || (config.udp && h->udp))
		return true;
	if (!config.icmp || proto != icmp)
		return false;
	h->icmp = 1;
	return true;
}

/*
 * Addresses against the filter, length and payload offset of IP, whose header
 * `ip` was read from `from`.
 */
static __always_inline int parse_ip(struct sk_buff *skb, __u8 *ip, void *from,
				    __u32 linear, __u32 *total,
				    struct headers *h)
{
	__u32 *a = (__u32 *)ip;
	int behind;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		h->family = 4;
		if (!wanted_proto(ip[9], IPPROTO_ICMP, h))
			goto not_tcp;
		if ((ip[6] & 0x1f) || ip[7])
			goto later;
		h->unmatched = !filter_v4(a[3], a[4]);
		if (h->unmatched && !nat_on)
			goto filtered;
		*total = ip[2] << 8 | ip[3];
		return (ip[0] & 0x0f) * 4;
	}
	if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		h->family = 6;
		behind = IPV6_HEADER | ip[6] << 16;
		if (ipv6_is_extension(ip[6]))
			behind = ipv6_transport(address(from), linear);
		if (!behind)
			goto unparsed;
		if (behind == IPV6_LATER)
			goto later;
		if (!wanted_proto(behind >> 16, IPPROTO_ICMPV6, h))
			goto not_tcp;
		h->unmatched = !filter_v6(a + 2, a + 6);
		if (h->unmatched && !nat_on)
			goto filtered;
		*total = ip[4] << 8 | ip[5];
		if (*total)
			*total += IPV6_HEADER;
		return behind & 0xffff;
	}
not_tcp:
	count(CN_NOT_TCP);
	return -1;
later:
	h->later = 1;
	count(CN_FRAGMENTS);
	return -1;
unparsed:
	count(CN_UNPARSED);
	return -1;
filtered:
	count(CN_FILTERED);
	return -1;
}

static __always_inline void parse_tcp(const __u32 *tcp, __u32 total, int off,
				      struct headers *h)
{
	const __u8 *bytes = (const __u8 *)tcp;
	int head = (bytes[12] >> 4) * 4;

	h->seq = bpf_ntohl(tcp[1]);
	h->word = tcp[3];
	h->has_ts = head == 32 && tcp[5] == bpf_htonl(TCPOPT_ALIGNED_TS);
	h->tsval = bpf_ntohl(tcp[6]);
	h->payload = total > off + head ? total - off - head : 0;
	h->flags = tcp_flags_of(bytes[13], h->payload);
}

/* ICMP has no ports: a filter for one does not match, and groups have 0. */
static __always_inline bool parse_icmp(__u32 total, int off, struct headers *h)
{
	if (config.port && !nat_on) {
		count(CN_FILTERED);
		return false;
	}
	h->unmatched |= config.port != 0;
	h->payload = total > off + 8 ? total - off - 8 : 0;
	h->flags = PF_ICMP;
	return true;
}

#define IP4_TCP	52		/* with the timestamp */
#define IP6_TCP	72

/*
 * Read the headers of a packet whose IP header is at ip; len and linear count
 * from there.  False, and counted, if it is none of ours.
 */
static __always_inline bool parse(struct sk_buff *skb, void *ip, __u32 len,
				  __u32 linear, struct headers *h)
{
	__u32 words[IP6_TCP / 4], total = 0, *l4 = words + 5;
	__u32 ahead[7];
	int off;

	/* Short ones: read the part that must be there, then the remainder. */
	if (linear >= IP6_TCP) {
		if (bpf_probe_read_kernel(words, IP6_TCP, ip))
			goto unparsed;
	} else if (linear >= IP4_TCP) {
		if (bpf_probe_read_kernel(words, IP4_TCP, ip))
			goto unparsed;
	} else {
		__builtin_memset(words, 0, sizeof(words));
		if (linear < 28 || bpf_probe_read_kernel(words, 28, ip))
			goto unparsed;
	}
	off = parse_ip(skb, (__u8 *)words, ip, linear, &total, h);
	if (off < 0)
		return false;
	/* Short frames are padded; jumbo GSO packets have 0. */
	if (!total || total > len)
		total = len;
	if (off == 40 && linear >= IP6_TCP) {
		l4 = words + 10;
	} else if (off != 20 || linear < IP4_TCP) {
		if (linear < off + 8)
			goto unparsed;
		__builtin_memset(ahead, 0, sizeof(ahead));
		if (linear >= off + 28 ?
		    bpf_probe_read_kernel(ahead, 28, ip + off) :
		    linear >= off + 20 ?
		    bpf_probe_read_kernel(ahead, 20, ip + off) :
		    bpf_probe_read_kernel(ahead, 8, ip + off))
			goto unparsed;
		l4 = ahead;
	}
	if (config.icmp && h->icmp)
		return parse_icmp(total, off, h);
	if (!filter_ports(((__u8 *)l4)[0] << 8 | ((__u8 *)l4)[1],
			  ((__u8 *)l4)[2] << 8 | ((__u8 *)l4)[3])) {
		if (!nat_on) {
			count(CN_FILTERED);
			return false;
		}
		h->unmatched = 1;
	}
	if (groups_on)
		h->port = lower_port(((__u8 *)l4)[0] << 8 | ((__u8 *)l4)[1],
				     ((__u8 *)l4)[2] << 8 | ((__u8 *)l4)[3]);
	if (h->udp) {
		h->payload = total > off + 8 ? total - off - 8 : 0;
		h->flags = PF_UDP | PF_DATA;
	} else {
		if (linear < off + 20)
			goto unparsed;
		parse_tcp(l4, total, off, h);
	}
	return true;
unparsed:
	count(CN_UNPARSED);
	return false;
}

/* A received packet, whose data begins at IP. */
static __always_inline bool parse_rx(struct sk_buff *skb, struct headers *h)
{
	return parse(skb, skb->data, skb->len, skb->len - skb->data_len, h);
}

/* A packet at a device, whose data begins at the link header. */
static __always_inline bool parse_tx(struct sk_buff *skb, struct headers *h)
{
	void *ip = skb->head + skb->network_header;
	__u32 skip = ahead_of_data(skb, skb->network_header);

	if (skip > 64) {
		count(CN_UNPARSED);
		return false;
	}
	return parse(skb, ip, skb->len - skip,
		     skb->len - skb->data_len - skip, h);
}

static __always_inline struct skb_shared_info *shared_info(struct sk_buff *skb)
{
	return (void *)(skb->head + skb->end);
}

static __always_inline __u32 gso_segments(struct sk_buff *skb)
{
	__u16 segments = BPF_CORE_READ(shared_info(skb), gso_segs);

	return segments ? segments : 1;
}

#endif
