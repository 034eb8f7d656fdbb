// SPDX-License-Identifier: GPL-2.0
/* The receiving end: the window it offers, and what arrived in how long. */
#define _GNU_SOURCE
#include "load.h"

#include <err.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

/* A line through (time, bytes), fitted by least squares. */
struct line {
	double n, t, b, tt, tb;
};

static void line_add(struct line *line, double t, double b)
{
	line->n++;
	line->t += t;
	line->b += b;
	line->tt += t * t;
	line->tb += t * b;
}

static double line_slope(const struct line *line)
{
	return (line->n * line->tb - line->t * line->b) /
	       (line->n * line->tt - line->t * line->t);
}

/*
 * Make @window bytes the most that @fd can offer from now on: a buffer that
 * holds as much payload by the kernel's own rate of exchange, which the clamp
 * tells (window_clamp = win_from_space(rcvbuf)), and the clamp.  Returns what
 * the kernel made of it: it has minima of some 1,150 bytes.
 */
static unsigned int set_window(int fd, int window)
{
	socklen_t len = sizeof(int);
	int rcvbuf, clamp;
	double ratio;

	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, &len) ||
	    getsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &clamp, &len))
		err(1, "cannot read the receive buffer");
	ratio = (double)clamp / rcvbuf;
	/* The kernel doubles what it is given. */
	rcvbuf = (window / ratio + 1) / 2;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &rcvbuf, len) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &window, len))
		err(1, "cannot set a window of %d bytes", window);
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, &len);
	getsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &clamp, &len);
	return rcvbuf * ratio > clamp ? rcvbuf * ratio : clamp;
}

static ssize_t read_some(int fd)
{
	static char buf[1 << 17];
	ssize_t n = read(fd, buf, sizeof(buf));

	if (n < 0)
		err(1, "read");
	if (n == 0 && !opt.writes)
		errx(1, "the sender ended early");
	return n;
}

/*
 * The receiver's part of sink_window(): say when a piece is read.  Returns the
 * bytes read that are no longer its.
 */
static ssize_t open_and_set_window(int fd, struct shared *shared)
{
	uint64_t got = 0;

	while (got < (uint64_t)opt.open)
		got += read_some(fd);
	shared->window = set_window(fd, opt.window);
	while (!shared->bulk) {
		if (shared->sent && got == opt.open + shared->sent &&
		    write(fd, "", 1) != 1)
			err(1, "write");
		got += read_some(fd);
	}
	return got - opt.open - shared->sent;
}

/* @n bytes came; answer each whole request. */
static void answer(int fd, ssize_t n)
{
	static char buf[1 << 17];
	static int have;

	for (have += n; have >= opt.request; have -= opt.request)
		if (write(fd, buf, opt.request) != opt.request)
			err(1, "write");
}

struct result receive(int listener, struct shared *shared)
{
	struct linger reset = { .l_onoff = 1 };
	struct line reads = {};
	struct sockaddr_storage peer = {};
	struct result res = {};
	uint64_t start, t, from = 0;
	socklen_t len;
	ssize_t n;
	int fd;

	len = sizeof(peer);
	fd = accept(listener, (struct sockaddr *)&peer, &len);
	if (fd < 0)
		err(1, "accept");
	/* At the same place in both families. */
	res.peer_port = ntohs(((struct sockaddr_in *)&peer)->sin_port);
	if (opt.rcvbuf && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &opt.rcvbuf,
				     sizeof(opt.rcvbuf)))
		err(1, "SO_RCVBUF %d", opt.rcvbuf);
	if (opt.window) {
		n = open_and_set_window(fd, shared);
		if (opt.request)
			answer(fd, n);
	}

	start = now();
	for (;;) {
		n = read_some(fd);
		if (opt.request)
			answer(fd, n);
		t = now();
		if (n == 0) {
			if (res.bytes != (uint64_t)opt.writes * opt.write_size)
				errx(1, "the sender ended early");
			break;
		}
		if (opt.writes) {
			res.bytes += n;
			res.ns = t - start;
			res.bytes_per_s = (double)res.bytes * NSEC_PER_SEC /
					  res.ns;
			continue;
		}
		if (!from) {
			if (t - start < opt.warmup_ns)
				continue;
			from = t;
			shared->measuring = true;
			n = 0;
		}
		/*
		 * A window arrives as a burst.  Where in one the first and the
		 * last read fall would be an error of up to one window; the
		 * slope through all reads has next to none of it.
		 */
		res.bytes += n;
		res.ns = t - from;
		line_add(&reads, res.ns, res.bytes);
		if (res.ns >= opt.measure_ns) {
			res.bytes_per_s = line_slope(&reads) * NSEC_PER_SEC;
			break;
		}
	}
	len = sizeof(res.info);
	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &res.info, &len);
	len = sizeof(res.window_clamp);
	getsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &res.window_clamp, &len);
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &res.rcvbuf, &len);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	return res;
}
