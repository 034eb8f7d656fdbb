/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One transfer measured at its receiver, for the commands bulk and request:
 * the engine (transfer.c) with its two ends, which are two processes.
 */
#ifndef TRANSFER_H
#define TRANSFER_H

#include "tcpload.h"

#include <limits.h>
#include <linux/tcp.h>
#include <stdatomic.h>

#define MAX_TIMED (1 << 20)	/* requests; later ones are not timed */
#define BUF_SIZE (1 << 24)	/* the largest write */
#define OPEN_WRITE 16384	/* bytes per write before the window is set */

/* What the two ends tell each other. */
struct shared {
	atomic_ullong sent;	/* bytes the sender wrote in sink_window() */
	atomic_uint window;	/* what the receiver advertises; 0: not set yet */
	atomic_bool bulk;	/* the window is set, all data is bulk now */
	struct tcp_info info;	/* the sender's last state */
	uint64_t begun_ns;	/* the time of align_ns that it waited for; 0: none */
	atomic_bool measuring;	/* the warm-up is over */
	unsigned int answered;	/* requests timed since */
	unsigned int unpinned, copied;	/* writes without a copy; with one */
	uint32_t took_ns[MAX_TIMED];	/* each, from write to last byte */
};

struct transfer {
	const char *from, *to;	/* namespaces */
	const char *address;	/* of the receiver */
	const char *cc;
	long port, warmup_ns, measure_ns;
	long write_size, writes;	/* writes 0: measure by time */
	long rcvbuf;		/* SO_RCVBUF after accept; 0: leave */
	long window;		/* bytes the receiver must advertise; 0: leave */
	long open;		/* bytes before the window is set */
	long align_ns, phase_ns;	/* when to connect; 0: at once */
	long pause_us, pause_every;	/* the reader rests after so many bytes */
	long ready_fd, go_fd;	/* to connect with others; -1: alone */
	long sender_cpu, receiver_cpu;	/* where to run; -1: anywhere */
	bool nodelay, zerocopy;
	bool verify;		/* compare the bytes that arrive */
	bool zerocopy_rx;
};

/* What a command does with the connection. */
struct transfer_load {
	/* Send until the receiver ends the transfer. */
	void (*send)(int fd, struct shared *shared, char *buf);
	/* @n more bytes arrived at the receiver; NULL: nothing to do. */
	void (*arrived)(int fd, ssize_t n);
};

struct result {
	unsigned long long bytes, ns;
	double bytes_per_s;
	struct tcp_info info;
	int window_clamp, rcvbuf;
	int peer_port;
	unsigned long long wrong;	/* bytes other than those sent */
	unsigned long long mapped;	/* bytes received without a copy */
};

extern struct transfer transfer;

#define TRANSFER_OPTIONS \
	{ "from", "NS", "network namespace of the sender (current)", .word = &transfer.from }, \
	{ "to", "NS", "network namespace of the receiver (current)", .word = &transfer.to }, \
	{ "address", "ADDR", "address of the receiver, IPv4 or IPv6 (127.0.0.1)", .word = &transfer.address }, \
	{ "port", "N", "TCP port", NUMBER(transfer.port, 1, 65535) }, \
	{ "warmup-ms", "N", "ms before measuring", TIME(transfer.warmup_ns, 0, 3600000, NSEC_PER_MSEC) }, \
	{ "measure-ms", "N", "ms to measure", TIME(transfer.measure_ns, 1, 3600000, NSEC_PER_MSEC) }, \
	{ "rcvbuf", "N", "SO_RCVBUF set after accept", NUMBER(transfer.rcvbuf, 1, INT_MAX) }, \
	{ "window", "N", "window in bytes that the receiver advertises (SO_RCVBUFFORCE " \
	  "and TCP_WINDOW_CLAMP, set after accept)", NUMBER(transfer.window, 4, INT_MAX) }, \
	{ "open", "N", "bytes to send before the window is set, rounded down to a " \
	  "multiple of 16384", NUMBER(transfer.open, 0, 1 << 30) }, \
	{ "ready-fd", "N", "when ready to connect, write a byte to this descriptor", \
	  NUMBER(transfer.ready_fd, -1, INT_MAX) }, \
	{ "go-fd", "N", "and wait until this one ends, before --align-ms", \
	  NUMBER(transfer.go_fd, -1, INT_MAX) }, \
	{ "align-ms", "N", "connect when the clock is a multiple of N ms", \
	  TIME(transfer.align_ns, 0, 10000, NSEC_PER_MSEC) }, \
	{ "phase-us", "N", "connect N us after the time of --align-ms", \
	  TIME(transfer.phase_ns, 0, 10000000, NSEC_PER_USEC) }, \
	{ "cc", "NAME", "congestion control of the sender", .word = &transfer.cc }, \
	{ "nodelay", NULL, "TCP_NODELAY at the sender", .flag = &transfer.nodelay }, \
	{ "sender-cpu", "N", "CPU of the sender (any)", NUMBER(transfer.sender_cpu, 0, 1023) }, \
	{ "receiver-cpu", "N", "CPU of the receiver (any)", NUMBER(transfer.receiver_cpu, 0, 1023) }

/* Run both ends of a struct transfer_load, print the result. */
int transfer_run(const void *load);

/* The sender, to the end of the transfer. */
void sender_run(const struct transfer *t, const struct transfer_load *load,
		struct shared *shared);

/* The receiver: one connection of @listener. */
struct result receiver_run(const struct transfer *t,
			   const struct transfer_load *load, int listener,
			   struct shared *shared);

/* --- verify.c ------------------------------------------------------------ */

void verify_fill(char *buf, size_t size);

/* How many of the next @n bytes of the stream are wrong. */
size_t verify_compare(const char *buf, size_t n, size_t write_size);

/* --- mapped.c ------------------------------------------------------------ */

/*
 * As read(), but maps what it can; adds to @mapped.  Returns all bytes
 * received; those that were not mapped are in @buf.
 */
ssize_t receive_mapped(int fd, char *buf, size_t size,
		       unsigned long long *mapped);

/* The mapping keeps the socket open; before close(). */
void mapped_end(void);

#endif /* TRANSFER_H */
