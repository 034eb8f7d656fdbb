// SPDX-License-Identifier: GPL-2.0-only
/*
 * The receiving end of a transfer: the window it advertises, and how many bytes
 * arrived in what time.
 */
#include "transfer.h"

#include <err.h>
#include <netinet/in.h>
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
 * Make @window bytes the most that @fd can advertise from now on: set the clamp,
 * and a buffer that holds as much payload by the kernel's own ratio, which
 * follows from the clamp before (window_clamp = win_from_space(rcvbuf)).
 * Returns the window that the kernel then allows; its minima are about 1,150
 * bytes.
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

static ssize_t read_some(const struct transfer *t, int fd, struct result *res)
{
	static char buf[1 << 17];
	ssize_t n = t->zerocopy_rx ?
			    receive_mapped(fd, buf, sizeof(buf), &res->mapped) :
			    read(fd, buf, sizeof(buf));

	if (n < 0)
		err(1, "read");
	if (t->verify)
		res->wrong += verify_compare(buf, n, t->write_size);
	if (n == 0 && !t->writes)
		errx(1, "the sender ended early");
	return n;
}

/*
 * The receiver's part of sink_window(): acknowledge each piece once it is read.
 * Returns how many bytes were read that belong to the transfer itself.
 */
static ssize_t open_and_set_window(const struct transfer *t, int fd,
				   struct shared *shared, struct result *res)
{
	uint64_t got = 0, open = t->open;

	while (got < open)
		got += read_some(t, fd, res);
	shared->window = set_window(fd, t->window);
	while (!shared->bulk) {
		if (shared->sent && got == open + shared->sent &&
		    write(fd, "", 1) != 1)
			err(1, "write");
		got += read_some(t, fd, res);
	}
	return got - open - shared->sent;
}

/* Rest where the bytes read since the last rest are enough. */
static void rest_after(const struct transfer *t, ssize_t n)
{
	static long since;

	since += n;
	if (!t->pause_us || since < t->pause_every)
		return;
	since = 0;
	usleep(t->pause_us);
}

struct result receiver_run(const struct transfer *t,
			   const struct transfer_load *load, int listener,
			   struct shared *shared)
{
	struct linger reset = { .l_onoff = 1 };
	struct line reads = {};
	struct sockaddr_storage peer = {};
	struct result res = {};
	uint64_t start, at, from = 0;
	socklen_t len;
	ssize_t n;
	int fd;

	len = sizeof(peer);
	fd = accept(listener, (struct sockaddr *)&peer, &len);
	if (fd < 0)
		err(1, "accept");
	/* At the same place in both families. */
	res.peer_port = ntohs(((struct sockaddr_in *)&peer)->sin_port);
	if (t->rcvbuf)
		set_option(fd, SOL_SOCKET, SO_RCVBUF, t->rcvbuf);
	if (t->window) {
		n = open_and_set_window(t, fd, shared, &res);
		if (load->arrived)
			load->arrived(fd, n);
	}

	start = now();
	for (;;) {
		n = read_some(t, fd, &res);
		if (load->arrived)
			load->arrived(fd, n);
		rest_after(t, n);
		at = now();
		if (n == 0) {
			if (res.bytes != (unsigned long long)t->writes * t->write_size)
				errx(1, "the sender ended early");
			break;
		}
		if (t->writes) {
			res.bytes += n;
			res.ns = at - start;
			res.bytes_per_s = (double)res.bytes * NSEC_PER_SEC /
					  res.ns;
			continue;
		}
		if (!from) {
			if (at - start < (uint64_t)t->warmup_ns)
				continue;
			from = at;
			shared->measuring = true;
			n = 0;
		}
		/*
		 * A window arrives as a burst.  Bytes per time depend on where in
		 * a burst the first and the last read fall, by up to one window;
		 * the slope through all reads hardly does.
		 */
		res.bytes += n;
		res.ns = at - from;
		line_add(&reads, res.ns, res.bytes);
		if (res.ns >= (uint64_t)t->measure_ns) {
			res.bytes_per_s = line_slope(&reads) * NSEC_PER_SEC;
			break;
		}
	}
	read_tcp_info(fd, &res.info);
	len = sizeof(res.window_clamp);
	getsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &res.window_clamp, &len);
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &res.rcvbuf, &len);
	mapped_end();
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	return res;
}
