// SPDX-License-Identifier: GPL-2.0-only
/*
 * Picks the arm of a connection: by the socket mark if that pins one, else by
 * a keyed hash of the endpoints.  Called once per connection.
 * userspace/mssab/mssab/experiment/arm.py and bpf/arm.h compute the same hash.
 */
#include <linux/minmax.h>
#include <linux/siphash.h>
#include <net/ipv6.h>

#include "arm.h"
#include "settings.h"

struct endpoint {
	struct in6_addr addr;	/* IPv4 as ::ffff:a.b.c.d */
	__be16 port;
} __packed;

/* Input of the hash; both ends of a connection build the same bytes. */
struct endpoints {
	struct endpoint low, high;
	u32 zero;
} __packed __aligned(SIPHASH_ALIGNMENT);

static_assert(sizeof(struct endpoints) == 40);

void mssfrac_arm_addresses(const struct sock *sk, struct in6_addr *local,
			   struct in6_addr *peer)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		*local = sk->sk_v6_rcv_saddr;
		*peer = sk->sk_v6_daddr;
		return;
	}
#endif
	ipv6_addr_set_v4mapped(inet_sk(sk)->inet_rcv_saddr, local);
	ipv6_addr_set_v4mapped(inet_sk(sk)->inet_daddr, peer);
}

static void endpoints_of(const struct sock *sk, struct endpoints *e)
{
	struct endpoint local = { .port = inet_sk(sk)->inet_sport };
	struct endpoint peer = { .port = inet_sk(sk)->inet_dport };

	mssfrac_arm_addresses(sk, &local.addr, &peer.addr);
	if (memcmp(&local, &peer, sizeof(local)) < 0) {
		e->low = local;
		e->high = peer;
	} else {
		e->low = peer;
		e->high = local;
	}
}

/*
 * SipHash-2-4 of the ordered endpoints under the key {ab_seed, 0}, scaled to
 * 0..99.  The four-tuple and the seed suffice to recover the arm later.  Two
 * hosts with the same seed put both ends of a connection into the same arm.
 */
static enum mssfrac_arm by_hash(const struct sock *sk,
				const struct mssfrac_settings *set)
{
	siphash_key_t key = { .key = { READ_ONCE(set->ab_seed), 0 } };
	struct endpoints e = {};
	u32 slot;

	endpoints_of(sk, &e);
	slot = reciprocal_scale((u32)siphash(&e, sizeof(e), &key), 100);
	return slot < READ_ONCE(set->ab_percent) ? MSSFRAC_TREATED :
						    MSSFRAC_STOCK;
}

/* ab_mark pins to the control arm, ab_mark + 1 to the treatment; 0 is off. */
enum mssfrac_arm mssfrac_arm_of(const struct sock *sk,
				const struct mssfrac_settings *set,
				bool *pinned)
{
	u32 first = READ_ONCE(set->ab_mark);
	u32 above = READ_ONCE(sk->sk_mark) - first;

	*pinned = first && above < MSSFRAC_ARMS;
	return *pinned ? above : by_hash(sk, set);
}
