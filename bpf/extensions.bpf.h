/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The extension headers of IPv6, which may stand between its header and that of
 * TCP or UDP (RFC 8200 section 4).
 */
#ifndef PATHPROF_EXTENSIONS_BPF_H
#define PATHPROF_EXTENSIONS_BPF_H

#include "compat.bpf.h"

#define IPV6_HEADER	40
#define IPV6_HEADERS	6	/* of these; the verifier wants an end */
#define NEXTHDR_FRAGMENT 44
#define NEXTHDR_AUTH	51
#define IPV6_LATER	1	/* no offset: a fragment that is not the first */

/* Hop-by-hop options, routing, fragment, authentication, destination options. */
static __always_inline bool ipv6_is_extension(__u8 next)
{
	return next < 64 && (1ULL << 0 | 1ULL << 43 | 1ULL << NEXTHDR_FRAGMENT |
			     1ULL << NEXTHDR_AUTH | 1ULL << 60) >> next & 1;
}

/*
 * Where the header behind them begins, counted from the header of IPv6 at `ip`,
 * and in the upper 16 bits its protocol.  0 if it is not in the first `linear`
 * bytes, IPV6_LATER if it is in another fragment.
 */
__noinline int ipv6_transport(__u64 ip, __u32 linear)
{
	__u32 off = IPV6_HEADER, i;
	__u8 head[8] = {}, next = 0;

	bpf_probe_read_kernel(&next, 1, (void *)ip + 6);
	for (i = 0; i < IPV6_HEADERS && ipv6_is_extension(next); i++) {
		if (off + sizeof(head) > linear ||
		    bpf_probe_read_kernel(head, sizeof(head), (void *)ip + off))
			return 0;
		if (next == NEXTHDR_FRAGMENT && (head[2] || head[3] & 0xf8))
			return IPV6_LATER;
		off += next == NEXTHDR_FRAGMENT ? 8 :
		       next == NEXTHDR_AUTH ? (head[1] + 2) * 4 :
					      (head[1] + 1) * 8;
		next = head[0];
	}
	return off | next << 16;
}

#endif
