// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compiles a pcap expression to classic BPF.  The programs in the kernel
 * interpret it (bpf/pcap.bpf.h).
 */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <string.h>
#include "pcap-filter.h"

#define SNAPLEN	262144		/* what a match returns; any but 0 */

static int copy(const struct bpf_program *prog, struct pcap_insn *insns,
		char *err, size_t len)
{
	unsigned int i;

	if (prog->bf_len > PCAP_INSNS) {
		snprintf(err, len, "it needs %u instructions, of which there "
			 "may be %u", prog->bf_len, PCAP_INSNS);
		return -E2BIG;
	}
	for (i = 0; i < prog->bf_len; i++)
		insns[i] = (struct pcap_insn){
			.code = prog->bf_insns[i].code,
			.jt = prog->bf_insns[i].jt,
			.jf = prog->bf_insns[i].jf,
			.k = prog->bf_insns[i].k,
		};
	return prog->bf_len;
}

int pcap_filter__compile(const char *expression, struct pcap_insn *insns,
			 char *err, size_t len)
{
	struct bpf_program prog;
	pcap_t *pcap;
	int rc;

	if (strlen(expression) > PCAP_EXPRESSION) {
		snprintf(err, len, "it has more than %d characters",
			 PCAP_EXPRESSION);
		return -E2BIG;
	}
	pcap = pcap_open_dead(DLT_RAW, SNAPLEN);
	if (!pcap) {
		snprintf(err, len, "out of memory");
		return -ENOMEM;
	}
	if (pcap_compile(pcap, &prog, expression, 1, PCAP_NETMASK_UNKNOWN)) {
		snprintf(err, len, "%s", pcap_geterr(pcap));
		rc = -EINVAL;
	} else {
		rc = copy(&prog, insns, err, len);
		pcap_freecode(&prog);
	}
	pcap_close(pcap);
	return rc;
}
