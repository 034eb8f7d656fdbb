// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compiles a pcap expression to classic BPF.  The programs in the kernel
 * interpret it (bpf/pcap.bpf.h).  Refuses what would compile and never be right
 * there: reads of the direction, the link layer and the payload.
 */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "record/pcap-filter.h"

#define SNAPLEN	262144		/* what a match returns; any but 0 */

/* What the kernel adds to a packet, at offsets of linux/filter.h. */
#define ADDED		0xffe00000U	/* from here on */
#define ADDED_TYPE	0xfffff004U	/* its direction */

#define TCP_HEADER	60	/* with all options */
#define UDP_HEADER	8

static const char no_direction[] =
	"a packet's headers do not contain its direction: use --dir";
static const char no_link[] =
	"it reads the link layer, but packets begin with their IP header here";
static const char no_part[] =
	"it reads what is not part of the packet: for a device use --dev";
static const char no_payload[] =
	"it reads the payload, but only headers can be matched";

/* Where the bracket of NAME[INDEX] closes. */
static const char *index_end(const char *index)
{
	int depth = 1;

	for (; *index; index++) {
		depth += (*index == '[') - (*index == ']');
		if (!depth)
			break;
	}
	return index;
}

/* The last byte of a constant index, N or N:SIZE; 0 for any other. */
static unsigned long last_byte(const char *index, const char *end)
{
	unsigned long size = 1, at;
	char *behind;

	at = strtoul(index, &behind, 0);
	behind += strspn(behind, " \t");
	if (behind != index && *behind == ':') {
		size = strtoul(behind + 1, &behind, 0);
		behind += strspn(behind, " \t");
	}
	return behind == end && size ? at + size - 1 : 0;
}

static bool is_payload(const char *layer, const char *index)
{
	bool tcp = !strcmp(layer, "tcp"), udp = !strcmp(layer, "udp");
	const char *end = index_end(index);

	if (!tcp && !udp)
		return false;
	/* Its index follows from the packet: where the header ends. */
	if (memchr(index, '[', end - index))
		return true;
	return last_byte(index, end) >= (tcp ? TCP_HEADER : UDP_HEADER);
}

static bool is_link(const char *layer)
{
	static const char *const layers[] = {
		"ether", "link", "fddi", "tr", "wlan", "ppp", "slip", "radio",
	};
	size_t i;

	for (i = 0; i < sizeof(layers) / sizeof(*layers); i++)
		if (!strcmp(layer, layers[i]))
			return true;
	return false;
}

/* Why an expression is refused by its words; NULL if it is not. */
static const char *wrong_words(const char *text)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyz0123456789";
	const char *at;
	char word[8];
	size_t n;

	for (; *(text += strcspn(text, letters)); text += n) {
		n = strspn(text, letters);
		at = text + n + strspn(text + n, " \t");
		if (n >= sizeof(word) || *at != '[')
			continue;
		snprintf(word, sizeof(word), "%.*s", (int)n, text);
		if (is_link(word))
			return no_link;
		if (is_payload(word, at + 1))
			return no_payload;
	}
	return NULL;
}

/* Why it is refused by what it reads: behind any header, or not of the packet. */
static const char *wrong_load(const struct bpf_insn *insn)
{
	static const unsigned int sizes[] = { 4, 2, 1, 4 };
	unsigned int mode = BPF_MODE(insn->code);
	uint64_t end = (uint64_t)insn->k + sizes[BPF_SIZE(insn->code) >> 3];

	if (BPF_CLASS(insn->code) != BPF_LD ||
	    (mode != BPF_ABS && mode != BPF_IND))
		return NULL;
	if (insn->k == ADDED_TYPE)
		return no_direction;
	if (insn->k >= ADDED)
		return no_part;
	return end > (mode == BPF_IND ? TCP_HEADER : PCAP_BYTES) ? no_payload :
								  NULL;
}

static int copy(const struct bpf_program *prog, struct pcap_insn *insns,
		char *err, size_t len)
{
	unsigned int i;

	if (prog->bf_len > PCAP_INSNS) {
		snprintf(err, len, "it needs %u instructions, of which there "
			 "may be %u", prog->bf_len, PCAP_INSNS);
		return -E2BIG;
	}
	for (i = 0; i < prog->bf_len; i++) {
		const char *wrong = wrong_load(&prog->bf_insns[i]);

		if (wrong) {
			snprintf(err, len, "%s", wrong);
			return -EINVAL;
		}
		insns[i] = (struct pcap_insn){
			.code = prog->bf_insns[i].code,
			.jt = prog->bf_insns[i].jt,
			.jf = prog->bf_insns[i].jf,
			.k = prog->bf_insns[i].k,
		};
	}
	return prog->bf_len;
}

int pcap_filter__compile(const char *expression, struct pcap_insn *insns,
			 char *err, size_t len)
{
	const char *wrong = wrong_words(expression);
	struct bpf_program prog;
	pcap_t *pcap;
	int rc;

	if (wrong) {
		snprintf(err, len, "%s", wrong);
		return -EINVAL;
	}

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
