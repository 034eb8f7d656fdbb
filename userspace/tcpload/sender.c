// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sending end of a transfer: when it connects, and what it does before the
 * command sends its data.
 */
#include "transfer.h"

#include <err.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* More than any window the open phase leaves. */
#define SINK_MAX	(16 << 20)

static void read_info(int fd, struct shared *shared)
{
	if (!read_tcp_info(fd, &shared->info))
		err(1, "TCP_INFO");
}

/*
 * A window, once advertised, is not retracted, and data that fills it would
 * not fit the smaller buffer.  Use it up in pieces that do fit, and wait until
 * each is read.
 */
static void sink_window(const struct transfer *t, int fd,
			struct shared *shared, const char *buf)
{
	int piece = t->window / 4 < 16384 ? t->window / 4 : 16384;
	char byte;

	/* Less than the header field's unit would be rounded up again. */
	read_info(fd, shared);
	if (piece < 1 << shared->info.tcpi_snd_wscale)
		piece = 1 << shared->info.tcpi_snd_wscale;
	/* The first piece may come before the window is set. */
	do {
		shared->sent += piece;
		if (write(fd, buf, piece) != piece || read(fd, &byte, 1) != 1)
			err(1, "the receiver ended early");
		read_info(fd, shared);
		if (shared->sent > SINK_MAX)
			errx(1, "the receiver advertises %u bytes, not %u",
			     shared->info.tcpi_snd_wnd, shared->window);
	} while (!shared->window || shared->info.tcpi_snd_wnd >=
		 shared->window + (2U << shared->info.tcpi_snd_wscale));
}

/*
 * Kernel timers run in ticks of the kernel's clock: always begin at the same
 * place between two ticks, or at a chosen one.
 */
static void wait_for_start(const struct transfer *t, struct shared *shared)
{
	struct timespec ts;
	uint64_t at;
	char byte;

	/* Others start at the same time, and loading a program takes long. */
	if (t->ready_fd >= 0 && write(t->ready_fd, "", 1) != 1)
		err(1, "--ready-fd");
	while (t->go_fd >= 0 && read(t->go_fd, &byte, 1) > 0)
		;
	if (!t->align_ns)
		return;
	at = (now() / t->align_ns + 1) * t->align_ns + t->phase_ns;
	shared->begun_ns = at;
	ts.tv_sec = at / NSEC_PER_SEC;
	ts.tv_nsec = at % NSEC_PER_SEC;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

void sender_run(const struct transfer *t, const struct transfer_load *load,
		struct shared *shared)
{
	struct sockaddr_storage ss;
	socklen_t len = address_of(t->address, t->port, &ss);
	char *buf = calloc(1, BUF_SIZE);
	long opening = t->open;
	ssize_t n = 0;
	int fd;

	if (!buf)
		err(1, "no memory for the largest write");
	if (t->verify)
		verify_fill(buf, t->write_size);
	fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		err(1, "socket");
	if (t->cc && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, t->cc,
				strlen(t->cc)))
		err(1, "congestion control %s", t->cc);
	if (t->nodelay)
		set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (t->zerocopy)
		set_option(fd, SOL_SOCKET, SO_ZEROCOPY, 1);
	wait_for_start(t, shared);
	if (connect(fd, (struct sockaddr *)&ss, len))
		err(1, "cannot connect to %s port %ld", t->address, t->port);
	if (t->window) {
		for (; opening > 0 && n >= 0; opening -= n)
			n = write(fd, buf, OPEN_WRITE);
		sink_window(t, fd, shared, buf);
	}
	shared->bulk = true;
	load->send(fd, shared, buf);
	read_info(fd, shared);
}
