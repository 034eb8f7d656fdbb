// SPDX-License-Identifier: GPL-2.0-only
/* Command bulk: one stream, for a time or a number of writes. */
#include "transfer.h"

#include <err.h>
#include <errno.h>
#include <poll.h>
#include <unistd.h>

/*
 * As write(), without a copy where the path to the receiver allows it.  The
 * buffer never changes, so it may be sent again before the kernel releases it.
 */
static ssize_t write_zerocopy(int fd, struct shared *shared, const char *buf)
{
	struct pollfd notes = { .fd = fd };
	ssize_t n;

	/* No memory for more notes: wait for some that can be read. */
	while ((n = send(fd, buf, transfer.write_size, MSG_ZEROCOPY)) < 0 &&
	       errno == ENOBUFS) {
		poll(&notes, 1, 1000);
		reap_zerocopy(fd, &shared->unpinned, &shared->copied);
	}
	if (n >= 0)
		reap_zerocopy(fd, &shared->unpinned, &shared->copied);
	return n;
}

static void send_data(int fd, struct shared *shared, char *buf)
{
	long left = transfer.writes;

	while ((transfer.zerocopy ? write_zerocopy(fd, shared, buf) :
		write(fd, buf, transfer.write_size)) >= 0)
		if (transfer.writes && !--left)
			return;
	if (errno != ECONNRESET && errno != EPIPE)
		err(1, "write");
}

static const struct option_spec options[] = {
	TRANSFER_OPTIONS,
	{ "write", "N", "bytes per write", NUMBER(transfer.write_size, 1, BUF_SIZE) },
	{ "writes", "N", "end after N writes, and measure from accept to the last byte; "
	  "0: measure by time", NUMBER(transfer.writes, 0, INT_MAX) },
	{ "pause-us", "N", "the reader rests for N us after each --pause-every bytes",
	  NUMBER(transfer.pause_us, 0, 60000000) },
	{ "pause-every", "N", "bytes between two rests of --pause-us; 1: after each read",
	  NUMBER(transfer.pause_every, 1, 1 << 30) },
	{ "zerocopy", NULL, "send with MSG_ZEROCOPY; zerocopy_sent counts these writes, "
	  "zerocopy_copied those that the kernel copied", .flag = &transfer.zerocopy },
	{ "zerocopy-rx", NULL, "receive with TCP_ZEROCOPY_RECEIVE; zerocopy_received "
	  "counts the bytes that were mapped", .flag = &transfer.zerocopy_rx },
	{ "verify", NULL, "compare every byte that arrives; wrong_bytes counts those that "
	  "differ", .flag = &transfer.verify },
	{}
};

const struct command bulk_command = {
	"bulk", "One stream, which the receiver measures and ends.", options,
	transfer_run, &(const struct transfer_load){ .send = send_data },
};
