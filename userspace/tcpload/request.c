// SPDX-License-Identifier: GPL-2.0-only
/* Command request: requests and answers, one at a time, for a given time. */
#include "transfer.h"

#include <err.h>
#include <unistd.h>

#define SIZE_MOST	(1 << 17)

static long size = 1000;

/* Requests until the receiver ends it, the next after the answer. */
static void ask(int fd, struct shared *shared, char *buf)
{
	uint64_t start, took;
	ssize_t n = 0;
	bool timed;
	long left;

	while (n >= 0) {
		timed = shared->measuring && shared->answered < MAX_TIMED;
		start = now();
		if (write(fd, buf, size) != size)
			return;
		for (left = size; left > 0 && n >= 0; left -= n) {
			n = read(fd, buf, left);
			if (!n)
				return;
		}
		took = now() - start;
		if (timed && n >= 0)
			shared->took_ns[shared->answered++] =
				took < UINT32_MAX ? took : UINT32_MAX;
	}
}

/* @n bytes arrived; answer each complete request. */
static void answer(int fd, ssize_t n)
{
	static char buf[SIZE_MOST];
	static long have;

	for (have += n; have >= size; have -= size)
		if (write(fd, buf, size) != size)
			err(1, "write");
}

static const struct option_spec options[] = {
	TRANSFER_OPTIONS,
	{ "size", "N", "bytes per request and per answer", NUMBER(size, 1, SIZE_MOST) },
	{}
};

const struct command request_command = {
	"request", "Requests and answers of one size, one at a time, with latencies.",
	options, transfer_run, &(const struct transfer_load){ ask, answer },
};
