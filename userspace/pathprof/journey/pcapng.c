// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sampled packets as pcapng (draft-ietf-opsawg-pcapng), for Wireshark and
 * tcpdump: the bytes that --capture kept, from IP on, each with a comment that
 * names the packet's number, path and times.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/tool.h"
#include "journey/trace.h"
#include "profile/label.h"
#include "profile/path-id.h"

#define LINKTYPE_RAW	101	/* IPv4 or IPv6, by the first four bits */
#define OPT_END		0
#define OPT_COMMENT	1
#define IF_NAME		2
#define IF_TSRESOL	9
#define SHB_USERAPPL	4

struct block {
	unsigned char bytes[1024];
	size_t n;
};

static void put32(struct block *b, uint32_t v)
{
	memcpy(b->bytes + b->n, &v, 4);
	b->n += 4;
}

static void put_bytes(struct block *b, const void *bytes, size_t n)
{
	memcpy(b->bytes + b->n, bytes, n);
	memset(b->bytes + b->n + n, 0, -n & 3);
	b->n += n + (-n & 3);
}

static void put_option(struct block *b, uint16_t code, const void *value,
		       uint16_t n)
{
	put32(b, code | (uint32_t)n << 16);
	put_bytes(b, value, n);
}

static void begin(struct block *b, uint32_t type)
{
	b->n = 0;
	put32(b, type);
	put32(b, 0);
}

/* The length stands on both sides. */
static void end(struct block *b)
{
	uint32_t n = b->n + 4;

	memcpy(b->bytes + 4, &n, 4);
	put32(b, n);
	fwrite(b->bytes, 1, b->n, stdout);
}

static void put_head(const struct journeys *all)
{
	char tool[64];
	struct block b;
	uint8_t nano = 9;

	begin(&b, 0x0a0d0d0a);
	put32(&b, 0x1a2b3c4d);
	put32(&b, 1);		/* version 1.0 */
	put32(&b, ~0U);		/* length of the section: not given */
	put32(&b, ~0U);
	snprintf(tool, sizeof(tool), "pathprof %s", all->profile.tool_version);
	put_option(&b, SHB_USERAPPL, tool, strlen(tool));
	put32(&b, OPT_END);
	end(&b);
	begin(&b, 1);
	put32(&b, LINKTYPE_RAW);
	put32(&b, 0);		/* no limit */
	put_option(&b, IF_NAME, "pathprof", 8);
	put_option(&b, IF_TSRESOL, &nano, 1);
	put32(&b, OPT_END);
	end(&b);
}

/* The recording's begin by the wall clock, to the second. */
static uint64_t started_ns(const struct profile *p)
{
	struct tm tm = {};

	if (!strptime(p->started, "%Y-%m-%dT%H:%M:%SZ", &tm))
		return 0;
	return timegm(&tm) * 1000000000ULL;
}

static void put_packet(const struct journeys *all, const struct journey *j,
		       uint64_t started)
{
	struct profile_path path = {};
	char words[PATH_WORDS], id[PATH_ID], text[400];
	uint64_t ns = started + j->start_ns;
	struct journey_sum sum;
	struct block b;

	journey__sum(all, j, &sum);
	path.key = sum.path;
	path__words(&all->profile, &path, words, sizeof(words));
	snprintf(text, sizeof(text), "packet %u: %s; path %s; work %llu ns, "
		 "waiting %llu ns; interface %u, namespace %u", j->number,
		 words, path__id(&all->profile, &sum.path, id),
		 (unsigned long long)sum.work_ns,
		 (unsigned long long)sum.wait_ns, j->flow.ifindex,
		 j->flow.netns);
	begin(&b, 6);
	put32(&b, 0);
	put32(&b, ns >> 32);
	put32(&b, ns);
	put32(&b, j->ncaptured);
	put32(&b, j->length > j->ncaptured ? j->length : j->ncaptured);
	put_bytes(&b, j->captured, j->ncaptured);
	put_option(&b, OPT_COMMENT, text, strlen(text));
	put32(&b, OPT_END);
	end(&b);
}

long journeys__pcapng(const struct journeys *all)
{
	uint64_t started = started_ns(&all->profile);
	long n = 0;
	size_t i;

	for (i = 0; i < all->n; i++)
		if (all->list[i].ncaptured && !n++)
			put_head(all);
	for (i = 0; i < all->n; i++)
		if (all->list[i].ncaptured)
			put_packet(all, &all->list[i], started);
	return n;
}
