/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * --filter: an expression in pcap syntax, which userspace compiles to classic
 * BPF, interpreted on a copy of the packet's first bytes, from IP on.  Without
 * a filter `pcap_length` is a constant 0, and the verifier removes all of it.
 */
#ifndef PATHPROF_PCAP_BPF_H
#define PATHPROF_PCAP_BPF_H

#include "compat.bpf.h"
#include "extensions.bpf.h"
#include "filter.bpf.h"
#include "pathprof.h"

const volatile struct pcap_insn pcap_insns[PCAP_INSNS] = {};
const volatile __u32 pcap_length = 0;

#define PCAP_NESTED	4	/* an interrupt's packet within a process's */

struct pcap_state {
	__u32 a, x, pc;
	__u32 copied;		/* bytes of data */
	__u32 length;		/* of the packet */
	__u32 result;
	__u32 level;		/* in the first state: those in use */
	__u32 m[16];
	__u8 data[PCAP_BYTES + 4];
};

/* Other ends for a packet's headers, in network order; family: AF_*. */
struct pcap_ends {
	__u32 source[4], destination[4];
	__u16 source_port, destination_port;
	__u32 family;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PCAP_NESTED);
	__type(key, __u32);
	__type(value, struct pcap_state);
} pcap_states SEC(".maps");

/* Fields of the code: class, size, mode, operation (linux/filter.h). */
enum { PC_LD, PC_LDX, PC_ST, PC_STX, PC_ALU, PC_JMP, PC_RET, PC_MISC };
enum { PM_IMM = 0x00, PM_ABS = 0x20, PM_IND = 0x40, PM_MEM = 0x60,
       PM_LEN = 0x80, PM_MSH = 0xa0 };
enum { PO_ADD = 0x00, PO_SUB = 0x10, PO_MUL = 0x20, PO_DIV = 0x30,
       PO_OR = 0x40, PO_AND = 0x50, PO_LSH = 0x60, PO_RSH = 0x70,
       PO_NEG = 0x80, PO_MOD = 0x90, PO_XOR = 0xa0 };
enum { PJ_JA = 0x00, PJ_EQ = 0x10, PJ_GT = 0x20, PJ_GE = 0x30, PJ_SET = 0x40 };

/* Bytes of the packet; false behind what was copied, which ends the filter. */
static __always_inline bool pcap_bytes(struct pcap_state *s, __u32 at,
				       __u32 size, __u32 *out)
{
	__u32 v = 0;

	if (at >= PCAP_BYTES || at + size > s->copied)
		return false;
	at &= PCAP_BYTES - 1;
	asm volatile("" : "+r"(at));
	if (at >= PCAP_BYTES)
		return false;
	v = s->data[at];
	if (size >= 2)
		v = v << 8 | s->data[at + 1];
	if (size == 4)
		v = v << 16 | s->data[at + 2] << 8 | s->data[at + 3];
	*out = v;
	return true;
}

static __always_inline bool pcap_load(struct pcap_state *s, __u16 code,
				      __u32 k, __u32 *to)
{
	__u32 size = code & 0x10 ? 1 : code & 0x08 ? 2 : 4;

	switch (code & 0xe0) {
	case PM_IMM:
		*to = k;
		return true;
	case PM_LEN:
		*to = s->length;
		return true;
	case PM_MEM:
		*to = s->m[k & 15];
		return true;
	case PM_IND:
		return pcap_bytes(s, s->x + k, size, to);
	case PM_ABS:
		return pcap_bytes(s, k, size, to);
	case PM_MSH:
		if (!pcap_bytes(s, k, 1, to))
			return false;
		*to = (*to & 0x0f) * 4;
		return true;
	}
	return false;
}

static __always_inline bool pcap_compute(struct pcap_state *s, __u16 code,
					 __u32 v)
{
	__u32 a = s->a;

	switch (code & 0xf0) {
	case PO_ADD:
		a += v;
		break;
	case PO_SUB:
		a -= v;
		break;
	case PO_MUL:
		a *= v;
		break;
	case PO_OR:
		a |= v;
		break;
	case PO_AND:
		a &= v;
		break;
	case PO_XOR:
		a ^= v;
		break;
	case PO_LSH:
		a = v < 32 ? a << (v & 31) : 0;
		break;
	case PO_RSH:
		a = v < 32 ? a >> (v & 31) : 0;
		break;
	case PO_NEG:
		a = -a;
		break;
	case PO_DIV:
		if (!v)
			return false;
		a /= v;
		break;
	case PO_MOD:
		if (!v)
			return false;
		a %= v;
		break;
	default:
		return false;
	}
	s->a = a;
	return true;
}

static __always_inline bool pcap_test(__u32 a, __u16 code, __u32 v)
{
	switch (code & 0xf0) {
	case PJ_EQ:
		return a == v;
	case PJ_GT:
		return a > v;
	case PJ_GE:
		return a >= v;
	default:
		return a & v;
	}
}

/* One instruction; 1 at the end, be it the packet's. */
static int pcap_step(__u32 i, void *level)
{
	struct pcap_state *s = bpf_map_lookup_elem(&pcap_states, level);
	const volatile struct pcap_insn *insn;
	__u32 k, v, at;
	__u16 code;

	(void)i;
	if (!s)
		return 1;
	at = s->pc & (PCAP_INSNS - 1);
	asm volatile("" : "+r"(at));
	if (at >= PCAP_INSNS)
		return 1;
	insn = &pcap_insns[at];
	code = insn->code;
	k = insn->k;
	s->pc++;
	v = code & 0x08 ? s->x : k;
	switch (code & 0x07) {
	case PC_LD:
		return !pcap_load(s, code, k, &s->a);
	case PC_LDX:
		return !pcap_load(s, code, k, &s->x);
	case PC_ST:
		s->m[k & 15] = s->a;
		return 0;
	case PC_STX:
		s->m[k & 15] = s->x;
		return 0;
	case PC_ALU:
		return !pcap_compute(s, code, v);
	case PC_JMP:
		if ((code & 0xf0) == PJ_JA)
			s->pc += k;
		else
			s->pc += pcap_test(s->a, code, v) ? insn->jt : insn->jf;
		return 0;
	case PC_RET:
		s->result = code & 0x10 ? s->a : k;
		return 1;
	default:
		if (code & 0x80)
			s->a = s->x;
		else
			s->x = s->a;
		return 0;
	}
}

static __always_inline void pcap_put(struct pcap_state *s, __u32 at,
				     const void *from, __u32 size)
{
	at &= PCAP_BYTES - 1;
	asm volatile("" : "+r"(at));
	if (at + size <= PCAP_BYTES)
		__builtin_memcpy(s->data + at, from, size);
}

/* Put other ends into the copy of the headers. */
static __always_inline void pcap_replace(struct pcap_state *s,
					 const struct pcap_ends *e)
{
	__u32 behind = (s->data[0] & 0x0f) * 4;

	if (e->family == AF_INET) {
		pcap_put(s, 12, e->source, 4);
		pcap_put(s, 16, e->destination, 4);
		if (config.icmp && s->data[9] == IPPROTO_ICMP)
			return;
	} else {
		pcap_put(s, 8, e->source, 16);
		pcap_put(s, 24, e->destination, 16);
		behind = IPV6_HEADER;
	}
	/* Ports behind extension headers stay as they are. */
	if (e->family != AF_INET && s->data[6] != IPPROTO_TCP &&
	    s->data[6] != IPPROTO_UDP)
		return;
	pcap_put(s, behind, &e->source_port, 2);
	pcap_put(s, behind + 2, &e->destination_port, 2);
}

/*
 * Does a packet match, with other ends if there are any?  Its IP header is at
 * `ip`; linear bytes from there on can be read, length is all of it.
 */
__noinline int pcap_match(__u64 ip, __u32 linear, __u32 length,
			  const struct pcap_ends *ends)
{
	struct pcap_state *first, *s;
	__u32 level, size;
	int result;

	if (!pcap_length)
		return 1;
	first = bpf_map_lookup_elem(&pcap_states, &(__u32){ 0 });
	if (!first)
		return 0;
	level = first->level;
	s = bpf_map_lookup_elem(&pcap_states, &level);
	if (!s)
		return 0;
	first->level = level + 1;
	size = linear < PCAP_BYTES ? linear : PCAP_BYTES;
	asm volatile("" : "+r"(size));
	if (size > PCAP_BYTES)
		size = PCAP_BYTES;
	s->a = s->x = s->pc = s->result = 0;
	s->copied = size;
	s->length = length;
	if (size && !bpf_probe_read_kernel(s->data, size, (void *)ip)) {
		if (nat_on && ends)
			pcap_replace(s, ends);
		bpf_loop(PCAP_INSNS, pcap_step, &level, 0);
	}
	result = s->result != 0;
	first->level = level;
	return result;
}

/* The same of a packet whose data begins at IP, or at the link header. */
static __always_inline bool pcap_match_skb(struct sk_buff *skb,
					   const struct pcap_ends *ends)
{
	__u32 skip;

	if (!pcap_length)
		return true;
	skip = ahead_of_data(skb, skb->network_header);
	if (skip > 64)
		return false;
	return pcap_match(address(skb->head) + skb->network_header,
			  skb->len - skb->data_len - skip, skb->len - skip,
			  ends);
}

/* And of one at a device, by its own ends. */
static __always_inline bool pcap_match_tx(struct sk_buff *skb)
{
	return pcap_match_skb(skb, NULL);
}

#endif
