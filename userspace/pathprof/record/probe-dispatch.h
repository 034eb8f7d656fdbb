/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The cost of reaching a hook's program and returning: the time of a system
 * call that passes hooks, before they are attached and after.
 */
#ifndef PATHPROF_PROBE_DISPATCH_H
#define PATHPROF_PROBE_DISPATCH_H

#include <stdint.h>

/* The hooks that the calls pass, each once. */
#define DISPATCH_EVENTS		"skb_copy_datagram_iovec", "consume_skb"
#define DISPATCH_FUNCTION	"tcp_sendmsg_locked"

/* Nanoseconds of one call; 0 if it cannot be made. */
uint64_t dispatch__events(void);
uint64_t dispatch__function(void);

#endif
