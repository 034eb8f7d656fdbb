// SPDX-License-Identifier: GPL-2.0
/* The sending end: when it begins, and what it writes. */
#define _GNU_SOURCE
#include "load.h"

#include <err.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* More than any window the open phase leaves. */
#define SINK_MAX	(16 << 20)

/*
 * A window, once offered, is not taken back, and what comes of it would not
 * fit the smaller buffer.  Use it up in pieces that do, each waited for.
 */
static void sink_window(int fd, struct shared *shared, const char *buf)
{
	int piece = opt.window / 4 < 16384 ? opt.window / 4 : 16384;
	socklen_t len = sizeof(shared->info);
	char byte;

	/* Less than the header field's unit would be rounded up again. */
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &shared->info, &len))
		err(1, "TCP_INFO");
	if (piece < 1 << shared->info.tcpi_snd_wscale)
		piece = 1 << shared->info.tcpi_snd_wscale;
	/* The first piece may come before the window is set. */
	do {
		shared->sent += piece;
		if (write(fd, buf, piece) != piece || read(fd, &byte, 1) != 1)
			err(1, "the receiver ended early");
		if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &shared->info, &len))
			err(1, "TCP_INFO");
		if (shared->sent > SINK_MAX)
			errx(1, "the sender is offered %u bytes, not %u",
			     shared->info.tcpi_snd_wnd, shared->window);
	} while (!shared->window || shared->info.tcpi_snd_wnd >=
		 shared->window + (2U << shared->info.tcpi_snd_wscale));
}

/* Requests until the receiver ends it, the next after the answer. */
static void ask(int fd, struct shared *shared, char *buf)
{
	uint64_t start, took;
	ssize_t n = 0;
	bool timed;
	int left;

	while (n >= 0) {
		timed = shared->measuring && shared->answered < MAX_TIMED;
		start = now();
		if (write(fd, buf, opt.request) != opt.request)
			return;
		for (left = opt.request; left > 0 && n >= 0; left -= n) {
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

/*
 * What the kernel says of writes that it no longer needs the memory of: many
 * at a time, and whether it copied them after all.
 */
static void reap(int fd, struct shared *shared)
{
	char control[128];
	struct msghdr msg;
	const struct sock_extended_err *said;
	const struct cmsghdr *part;

	for (;;) {
		msg = (struct msghdr){ .msg_control = control,
				       .msg_controllen = sizeof(control) };
		if (recvmsg(fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			return;
		part = CMSG_FIRSTHDR(&msg);
		if (!part)
			return;
		said = (const void *)CMSG_DATA(part);
		if (said->ee_origin != SO_EE_ORIGIN_ZEROCOPY)
			continue;
		if (said->ee_code & SO_EE_CODE_ZEROCOPY_COPIED)
			shared->copied += said->ee_data - said->ee_info + 1;
		else
			shared->unpinned += said->ee_data - said->ee_info + 1;
	}
}

/*
 * As write(), without a copy where the way to the receiver allows it.  The buffer
 * holds zeros for good, so it may go out again before it is said to be free.
 */
static ssize_t write_zerocopy(int fd, struct shared *shared, const char *buf)
{
	struct pollfd told = { .fd = fd };
	ssize_t n;

	/* No memory for more notes: wait for some that can be read. */
	while ((n = send(fd, buf, opt.write_size, MSG_ZEROCOPY)) < 0 &&
	       errno == ENOBUFS) {
		poll(&told, 1, 1000);
		reap(fd, shared);
	}
	if (n >= 0)
		reap(fd, shared);
	return n;
}

/* All the writes asked for, or until the receiver ends the transfer. */
static void send_data(int fd, struct shared *shared, const char *buf)
{
	long left = opt.writes;

	while ((opt.zerocopy ? write_zerocopy(fd, shared, buf) :
			       write(fd, buf, opt.write_size)) >= 0)
		if (opt.writes && !--left)
			return;
	if (errno != ECONNRESET && errno != EPIPE)
		err(1, "write");
}

/*
 * Timers run in ticks of the kernel's clock: begin at the same place between
 * two of them each time, or one that was chosen.
 */
static void wait_for_start(void)
{
	struct timespec ts;
	uint64_t at;

	if (!opt.align_ns)
		return;
	at = (now() / opt.align_ns + 1) * opt.align_ns + opt.phase_ns;
	ts.tv_sec = at / NSEC_PER_SEC;
	ts.tv_nsec = at % NSEC_PER_SEC;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

void send_until_reset(struct shared *shared)
{
	socklen_t info_len = sizeof(shared->info);
	struct sockaddr_storage ss;
	socklen_t len = address_of(&ss);
	char *buf = calloc(1, BUF_SIZE);
	int one = 1, fd, opening = opt.open;
	ssize_t n = 0;

	if (!buf)
		err(1, "write size %d", opt.write_size);
	fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		err(1, "socket");
	if (opt.cc && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, opt.cc,
				 strlen(opt.cc)))
		err(1, "congestion control %s", opt.cc);
	if (opt.nodelay)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (opt.zerocopy &&
	    setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)))
		err(1, "SO_ZEROCOPY");
	wait_for_start();
	if (connect(fd, (struct sockaddr *)&ss, len))
		err(1, "cannot connect to %s port %d", opt.address, opt.port);
	if (opt.window) {
		for (; opening > 0 && n >= 0; opening -= n)
			n = write(fd, buf, 16384);
		sink_window(fd, shared, buf);
	}
	shared->bulk = true;
	if (opt.request)
		ask(fd, shared, buf);
	else
		send_data(fd, shared, buf);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &shared->info, &info_len))
		err(1, "TCP_INFO");
}
