// SPDX-License-Identifier: GPL-2.0-only
/*
 * What became of messages of ICMP (bpf/icmp.bpf.h, end.bpf.h): used, read from a
 * copy, refused by a socket, left unread.
 */
#include "packets.h"
#include "../../../bpf/icmp.bpf.h"

#define REPLY	0
#define REQUEST	8

static struct sock raw = { .sk_protocol = IPPROTO_ICMP };

/* `first` enters the stack as a message of this type, and IP delivers it. */
static void arrives(__u8 type)
{
	begin();
	memset(socks, 0, sizeof(socks));
	config.icmp = config.stack = config.exits = 1;
	headers[9] = IPPROTO_ICMP;
	headers[20] = type;
	stack_netif(&first);
	first.data = headers + 20;
	icmp_arrives(&first, true);
}

/* A raw socket gets the copy `second`. */
static void copied(void)
{
	icmp_queued(&raw, &second);
	rx_socket(&raw, &second);
}

static void case_used(void)
{
	int good;

	arrives(REQUEST);
	good = followed(&first) && counted.counters[CN_SAMPLED] == 1;
	copied();
	good &= followed(&first) && !followed(&second);
	stack_end(address(&first), END_CONSUMED, 0, 0);
	report("a request that ICMP answers is used, and not its copy",
	       good && ended_at(END_CONSUMED, ST_RX_FREE) && balanced());
}

static void case_read(void)
{
	int good;

	arrives(REPLY);
	copied();
	good = followed(&second) && !followed(&first);
	/* ICMP itself has no socket for it. */
	stack_end(address(&first), END_DROPPED, 99, 0);
	rx_close();
	rx_copy(&second);
	stack_end(address(&second), END_CONSUMED, 0, 0);
	report("a reply is read from its copy", good &&
	       ended_at(END_DELIVERED, ST_RX_FREE) &&
	       ended(PATHPROF_END_MAX) == 1 && balanced());
}

static void case_refused(void)
{
	/* IPv6 has only the general reason on some kernels. */
	__u32 reasons[] = { SKB_DROP_REASON_SOCKET_FILTER,
			    SKB_DROP_REASON_NOT_SPECIFIED };
	int good = 1, i;

	for (i = 0; i < 2; i++) {
		arrives(REPLY);
		copied();
		good &= icmp_refused(&second, reasons[i]) && followed(&first) &&
			!followed(&second);
		copied();
		good &= followed(&second) && !icmp_refused(&second, 99);
		stack_end(address(&second), END_DROPPED, 99, 0);
		good &= ended_at(END_DROPPED, ST_DROP) &&
			ended(PATHPROF_END_MAX) == 1 && balanced();
	}
	report("what one socket's filter refuses goes on to the next", good);
}

static void case_unread(void)
{
	int good = 1;
	__u32 i;

	for (i = 0; i < 2; i++) {
		arrives(REPLY);
		copied();
		rx_close();
		/* close(), or another packet has its address. */
		if (i)
			stack_netif(&second);
		else
			stack_end(address(&second), END_DROPPED,
				  SKB_DROP_REASON_QUEUE_PURGE, 0);
		good &= ended(END_UNREAD) == 1 &&
			ended(PATHPROF_END_MAX) == 1 && balanced();
	}
	report("a reply that its socket is closed with is unread", good);
}

static void case_kernels(void)
{
	int good = 1, i;
	__u32 at;

	for (i = 0; i < 2; i++) {
		LINUX_KERNEL_VERSION = i ? VERSION(6, 12, 0) :
					   VERSION(6, 1, 0);
		arrives(REQUEST);
		at = tracked_lock(address(&first));
		tracked_at(at)->path.family = 6;
		tracked_unlock(at, address(&first));
		stack_end(address(&first), END_DROPPED,
			  SKB_DROP_REASON_NOT_SPECIFIED, 0);
		good &= ended(i ? END_DROPPED : END_CONSUMED) == 1 &&
			balanced();
	}
	LINUX_KERNEL_VERSION = 0;
	report("before 6.3 ICMPv6 does not report what it has used", good);
}

static void case_off(void)
{
	int good;

	arrives(REQUEST);
	good = followed(&first);
	config.port = 8;
	arrives(REQUEST);
	good &= !followed(&first) && counted.counters[CN_FILTERED] == 1;
	config.port = 0;
	begin();
	config.icmp = 0;
	stack_netif(&first);
	report("ICMP has no port, and is not followed unless asked for", good &&
	       !followed(&first) && counted.counters[CN_NOT_TCP] == 1);
}

int main(void)
{
	printf("KTAP version 1\n1..6\n");
	case_used();
	case_read();
	case_refused();
	case_unread();
	case_kernels();
	case_off();
	return failures != 0;
}
