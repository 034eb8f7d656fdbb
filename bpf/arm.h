/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which arm of mssfrac a connection is in, from its two endpoints and the
 * namespace's settings: the rule that mssfrac(4), ARMS, gives to everybody.
 * kmod/arm.c and userspace/mssab/mssab/experiment/arm.py compute the same.  Pure
 * arithmetic, compiled for BPF and in a userspace test.
 */
#ifndef PATHPROF_ARM_H
#define PATHPROF_ARM_H

/* Address (IPv4 as ::ffff:a.b.c.d) and port as they lie in memory. */
struct arm_end {
	__u64 addr[2];
	__u16 port;
};

/* As memcmp() would say of the bytes, on a little-endian machine. */
static inline int arm_end_before(const struct arm_end *a,
				 const struct arm_end *b)
{
	if (a->addr[0] != b->addr[0])
		return __builtin_bswap64(a->addr[0]) <
		       __builtin_bswap64(b->addr[0]);
	if (a->addr[1] != b->addr[1])
		return __builtin_bswap64(a->addr[1]) <
		       __builtin_bswap64(b->addr[1]);
	return __builtin_bswap16(a->port) < __builtin_bswap16(b->port);
}

#define SIP_ROTATE(x, n) ((x) << (n) | (x) >> (64 - (n)))

#define SIP_ROUND(a, b, c, d) do {					\
	a += b; b = SIP_ROTATE(b, 13) ^ a; a = SIP_ROTATE(a, 32);	\
	c += d; d = SIP_ROTATE(d, 16) ^ c;				\
	a += d; d = SIP_ROTATE(d, 21) ^ a;				\
	c += b; b = SIP_ROTATE(b, 17) ^ c; c = SIP_ROTATE(c, 32);	\
} while (0)

#define SIP_WORD(a, b, c, d, word) do {					\
	__u64 word_ = (word);						\
	d ^= word_;							\
	SIP_ROUND(a, b, c, d);						\
	SIP_ROUND(a, b, c, d);						\
	a ^= word_;							\
} while (0)

/*
 * Place of the connection in 0..99: SipHash-2-4 under {seed, 0} of the 40
 * bytes smaller end, larger end, four zeros.  An end is 18 bytes, so the words
 * of the second are put together by shifts.
 */
static inline __u32 arm_slot(const struct arm_end *one,
			     const struct arm_end *other, __u32 seed)
{
	int first = arm_end_before(one, other);
	__u64 l0 = first ? one->addr[0] : other->addr[0];
	__u64 l1 = first ? one->addr[1] : other->addr[1];
	__u64 h0 = first ? other->addr[0] : one->addr[0];
	__u64 h1 = first ? other->addr[1] : one->addr[1];
	__u64 lport = first ? one->port : other->port;
	__u64 hport = first ? other->port : one->port;
	__u64 a = 0x736f6d6570736575ULL ^ seed;
	__u64 b = 0x646f72616e646f6dULL;
	__u64 c = 0x6c7967656e657261ULL ^ seed;
	__u64 d = 0x7465646279746573ULL;

	SIP_WORD(a, b, c, d, l0);
	SIP_WORD(a, b, c, d, l1);
	SIP_WORD(a, b, c, d, lport | h0 << 16);
	SIP_WORD(a, b, c, d, h0 >> 48 | h1 << 16);
	SIP_WORD(a, b, c, d, h1 >> 48 | hport << 16);
	SIP_WORD(a, b, c, d, 40ULL << 56);
	c ^= 0xff;
	SIP_ROUND(a, b, c, d);
	SIP_ROUND(a, b, c, d);
	SIP_ROUND(a, b, c, d);
	SIP_ROUND(a, b, c, d);
	return ((a ^ b ^ c ^ d) & 0xffffffff) * 100 >> 32;
}

#endif
