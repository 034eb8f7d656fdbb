// SPDX-License-Identifier: GPL-2.0-only
/*
 * One connection of tcpload: both its sockets, the options that change
 * at random, and the bytes that are sent and checked.  Does not wait and does
 * not judge progress.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "pattern.h"

#define PERIOD		1000003		/* of the pattern; a prime */
#define CHUNK_MAX	65536		/* bytes of a read or write */

struct flow flows[MAX_FLOWS];
int listener[MAX_ADDRESSES];
struct totals total;
static unsigned char bytes[PERIOD + CHUNK_MAX];
static unsigned int next_id;

/* splitmix64 */
static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static uint64_t below(struct flow *f, uint64_t n)
{
	return draw(&f->random) % n;
}

static bool one_in(struct flow *f, uint64_t n)
{
	return below(f, n) == 0;
}

void make_pattern(void)
{
	uint64_t state = 4711;
	size_t i;

	for (i = 0; i < PERIOD; i++)
		bytes[i] = draw(&state);
	memcpy(bytes + PERIOD, bytes, CHUNK_MAX);
}

static const char *end_name(int end)
{
	return end == CLIENT ? "client" : "server";
}

bool read_memory(int fd, struct memory *m)
{
	__u32 all[SK_MEMINFO_VARS] = {};
	socklen_t length = sizeof(all);

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, all, &length))
		return false;
	m->used = all[SK_MEMINFO_RMEM_ALLOC];
	m->limit = all[SK_MEMINFO_RCVBUF];
	return true;
}

static void show_end(const struct flow *f, int end)
{
	const struct way *w = &f->way[end];
	struct memory m;
	struct tcp_info i;

	fprintf(stderr, "  %s to %s: %llu of %llu bytes sent, %llu read, "
		"idle %llu ms\n", end_name(end), end_name(!end), w->sent,
		w->length, w->got, w->idle / MSEC);
	if (f->fd[end] < 0 || !read_tcp_info(f->fd[end], &i))
		return;
	fprintf(stderr, "  %s: state %u ca %u retransmits %u probes %u "
		"backoff %u rto %u us unacked %u notsent %u rcv_space %u "
		"snd_mss %u snd_wnd %u cwnd %u last sent %u ms ago, received "
		"%u ms ago, an ACK %u ms ago\n",
		end_name(end), i.tcpi_state, i.tcpi_ca_state, i.tcpi_retransmits, i.tcpi_probes,
		i.tcpi_backoff, i.tcpi_rto, i.tcpi_unacked,
		i.tcpi_notsent_bytes, i.tcpi_rcv_space, i.tcpi_snd_mss,
		i.tcpi_snd_wnd, i.tcpi_snd_cwnd, i.tcpi_last_data_sent,
		i.tcpi_last_data_recv, i.tcpi_last_ack_recv);
	if (!read_memory(f->fd[end], &m))
		return;
	fprintf(stderr, "  %s: rcv_ssthresh %u rcv_mss %u rcv_wscale %u, received "
		"packets use %u of %u bytes\n", end_name(end), i.tcpi_rcv_ssthresh,
		i.tcpi_rcv_mss, i.tcpi_rcv_wscale, m.used, m.limit);
}

void fail(const struct flow *f, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "tcpload: connection %u (%s, client port %u): ",
		f->id, pattern.address[f->address], f->port);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	show_end(f, CLIENT);
	show_end(f, SERVER);
	timer_show(f);
	exit(1);
}

/* The port is in the same place for both families. */
static in_port_t port_of(const struct sockaddr_storage *ss)
{
	return ntohs(((const struct sockaddr_in *)ss)->sin_port);
}

/* --- Sockets and their options ------------------------------------------- */

/* The kernel may refuse, for example a clamp below the minimum. */
static void try_option(int fd, int level, int name, int value)
{
	setsockopt(fd, level, name, &value, sizeof(value));
}

/* Buffers from below one segment to the kernel's own choice. */
static void choose_buffer(struct flow *f, int fd)
{
	static const int sizes[] = { 4096, 8192, 16384, 32768, 65536, 262144 };
	size_t n = below(f, sizeof(sizes) / sizeof(sizes[0]) + 2);

	if (n < sizeof(sizes) / sizeof(sizes[0]))
		try_option(fd, SOL_SOCKET, SO_RCVBUF, sizes[n]);
}

static void plan_way(struct flow *f, struct way *w, bool empty)
{
	*w = (struct way){ .start = below(f, PERIOD) };
	if (!empty)
		w->length = 1 + below(f, 1ULL << (4 + below(f, 16)));
}

bool open_flow(struct flow *f)
{
	struct sockaddr_storage ss;
	socklen_t len;
	int one_way, fd;

	f->id = next_id++;
	f->random = (uint64_t)pattern.seed << 32 | f->id;
	f->address = below(f, pattern.addresses);
	one_way = below(f, 4);	/* 2, 3: both */
	plan_way(f, &f->way[CLIENT], one_way == SERVER);
	plan_way(f, &f->way[SERVER], one_way == CLIENT);
	f->zerocopy = one_in(f, 4);
	f->corked = false;
	f->idle = 0;
	f->fd[SERVER] = -1;

	len = address_of(pattern.address[f->address], pattern.port, &ss);
	fd = socket(ss.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
		    0);
	f->fd[CLIENT] = fd;
	if (fd < 0) {
		if (pattern.faults)
			return false;
		err(1, "socket");
	}
	choose_buffer(f, fd);
	if (f->zerocopy)
		try_option(fd, SOL_SOCKET, SO_ZEROCOPY, 1);
	if (connect(fd, (struct sockaddr *)&ss, len) && errno != EINPROGRESS) {
		if (!pattern.faults && errno != EADDRNOTAVAIL)
			err(1, "connect to %s", pattern.address[f->address]);
		close(fd);
		f->fd[CLIENT] = -1;
		total.retried++;
		return false;
	}
	len = sizeof(ss);
	if (getsockname(fd, (struct sockaddr *)&ss, &len))
		err(1, "getsockname");
	f->port = port_of(&ss);
	return true;
}

void close_flow(struct flow *f)
{
	close(f->fd[CLIENT]);
	if (f->fd[SERVER] >= 0)
		close(f->fd[SERVER]);
	f->fd[CLIENT] = f->fd[SERVER] = -1;
}

/*
 * Without memory for a TIME-WAIT socket the kernel closes at once
 * (tcp_time_wait(); it counts TCPTimeWaitOverflow).  If the last ACK was lost,
 * the retransmitted FIN is then answered by a RST.
 */
void end_failed(struct flow *f, int end, const char *what, int error)
{
	if (!pattern.faults || error != ECONNRESET || !f->way[CLIENT].shut ||
	    !f->way[SERVER].shut)
		fail(f, "%s: %s: %s", end_name(end), what, strerror(error));
	total.resets++;
	f->moved = true;
	close_flow(f);
}

void accept_one(int address)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof(ss);
	struct flow *f;
	int fd;

	fd = accept4(listener[address], (struct sockaddr *)&ss, &len,
		     SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		return;		/* none, or no memory: try again later */
	for (f = flows; f < flows + pattern.flows; f++) {
		if (f->fd[CLIENT] < 0 || f->fd[SERVER] >= 0 ||
		    f->address != address || f->port != port_of(&ss))
			continue;
		f->fd[SERVER] = fd;
		choose_buffer(f, fd);
		if (f->zerocopy)
			try_option(fd, SOL_SOCKET, SO_ZEROCOPY, 1);
		total.connections++;
		return;
	}
	close(fd);		/* its client gave up */
}

/* --- Data ---------------------------------------------------------------- */

static const unsigned char *expected(const struct way *w, uint64_t position)
{
	return bytes + (w->start + position) % PERIOD;
}

void send_some(struct flow *f, int end)
{
	struct way *w = &f->way[end];
	int fd = f->fd[end], turn, flags;
	uint64_t size;
	bool lost;
	ssize_t n;

	if (pattern.inject == STALL && f < flows + 4 && w->sent > FAULT_AT)
		return;
	for (turn = 0; turn < 4 && w->sent < w->length; turn++) {
		if (one_in(f, 16))
			try_option(fd, IPPROTO_TCP, TCP_NODELAY, below(f, 2));
		if (one_in(f, 16)) {
			f->corked = !f->corked;
			try_option(fd, IPPROTO_TCP, TCP_CORK, f->corked);
		}
		size = 1 + below(f, one_in(f, 2) ? 100 : CHUNK_MAX);
		if (size > w->length - w->sent)
			size = w->length - w->sent;
		flags = MSG_NOSIGNAL;
		if (f->zerocopy && one_in(f, 2))
			flags |= MSG_ZEROCOPY;
		/* As if the kernel lost a byte: all later ones come one early. */
		lost = pattern.inject == LOSE && w->sent > FAULT_AT;
		n = send(fd, expected(w, w->sent + lost), size, flags);
		if (n < 0) {
			if (errno == EAGAIN)
				break;
			/* Out of memory, or of room for completions. */
			if ((errno == ENOBUFS || errno == ENOMEM) &&
			    (flags & MSG_ZEROCOPY || pattern.faults)) {
				reap_zerocopy(fd, NULL, NULL);
				break;
			}
			end_failed(f, end, "send", errno);
			return;
		}
		if (flags & MSG_ZEROCOPY)
			total.zerocopy++;
		w->sent += n;
	}
	if (w->sent == w->length && !w->shut) {
		try_option(fd, IPPROTO_TCP, TCP_CORK, 0);
		if (shutdown(fd, SHUT_WR))
			fail(f, "shutdown: %s", strerror(errno));
		w->shut = true;
	}
}

static void check(const struct flow *f, const struct way *w,
		  const unsigned char *got, ssize_t n)
{
	const unsigned char *want = expected(w, w->got), *found;
	ssize_t i;

	if (!memcmp(got, want, n))
		return;
	for (i = 0; got[i] == want[i]; i++)
		;
	if (n - i >= 8) {
		found = memmem(bytes, sizeof(bytes), got + i, 8);
		if (found)
			fprintf(stderr, "tcpload: the 8 bytes there "
				"belong %td bytes later\n", found - want - i);
	}
	fail(f, "byte %llu is 0x%02x, not 0x%02x",
	     w->got + i, got[i], want[i]);
}

void read_some(struct flow *f, int end, uint64_t t)
{
	static unsigned char buf[CHUNK_MAX];
	struct way *w = &f->way[!end];
	int fd = f->fd[end], turn;
	ssize_t n;

	for (turn = 0; turn < 4 && !w->ended; turn++) {
		n = recv(fd, buf, 1 + below(f, sizeof(buf)), 0);
		if (n < 0) {
			if (errno == EAGAIN || (errno == ENOMEM && pattern.faults))
				return;
			end_failed(f, end, "recv", errno);
			return;
		}
		f->moved = true;
		w->idle = 0;
		if (n == 0) {
			w->ended = true;
			if (w->got != w->length)
				fail(f, "ended %llu bytes early",
				     w->length - w->got);
			return;
		}
		if (w->got + n > w->length)
			fail(f, "%llu bytes more than were sent",
			     w->got + n - w->length);
		if (pattern.inject == CORRUPT && w->got > FAULT_AT)
			buf[n / 2] ^= 1;
		check(f, w, buf, n);
		w->got += n;
		total.bytes += n;
		if (one_in(f, 128))
			choose_buffer(f, fd);
		if (one_in(f, 128))
			try_option(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP,
				   2048 + below(f, 65536));
		if (one_in(f, 64)) {
			w->paused_until = t + below(f, 300 * MSEC);
			return;
		}
	}
}

/*
 * All bytes are there and the end was seen.  The kernel gives up a FIN that it
 * has no memory for (tcp_send_fin()): then the bytes alone must suffice.
 */
bool way_done(const struct way *w)
{
	return w->ended || (pattern.faults && w->shut && w->got == w->length);
}
