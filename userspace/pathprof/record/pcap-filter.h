/* SPDX-License-Identifier: GPL-2.0-only */
/* --filter: expressions in pcap syntax, compiled by libpcap. */
#ifndef PATHPROF_PCAP_FILTER_H
#define PATHPROF_PCAP_FILTER_H

#include <stddef.h>
#include <linux/types.h>
#include "pathprof.h"

#define PCAP_EXPRESSION	300	/* characters */

/*
 * Compile for packets that begin with their IP header.  How many instructions,
 * PCAP_INSNS at most; or a negative errno, and the reason in err.
 */
int pcap_filter__compile(const char *expression, struct pcap_insn *insns,
			 char *err, size_t len);

#endif
