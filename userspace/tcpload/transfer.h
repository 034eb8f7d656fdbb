/* SPDX-License-Identifier: GPL-2.0 */
/* mssab-load: what its two ends, processes of one program, have in common. */
#ifndef MSSAB_LOAD_H
#define MSSAB_LOAD_H

#include <linux/tcp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define NSEC_PER_SEC 1000000000ULL
#define EXIT_USAGE 2
#define MAX_TIMED (1 << 20)	/* requests; later ones are not timed */
#define BUF_SIZE (1 << 24)	/* the largest write */

struct options {
	const char *from, *to;	/* namespaces; NULL: the current one */
	const char *address;	/* of the receiver, IPv4 or IPv6 */
	const char *cc;
	uint64_t warmup_ns, measure_ns;
	long writes;		/* then end; 0: measure by time */
	int port;
	int write_size;
	int rcvbuf;		/* SO_RCVBUF after accept; 0: leave */
	int window;		/* bytes the receiver shall offer; 0: leave */
	int open;		/* bytes before the window is set */
	uint64_t align_ns, phase_ns;	/* when to connect; 0: at once */
	int request;		/* bytes of request and answer; 0: bulk */
	int sender_cpu, receiver_cpu;	/* where to run; -1: anywhere */
	bool nodelay;
	bool zerocopy;
};

extern struct options opt;

/* What the two ends tell each other; they are processes of one program. */
struct shared {
	atomic_ullong sent;	/* bytes the sender wrote while it sinks */
	atomic_uint window;	/* what the receiver offers, bytes; 0: unset */
	atomic_bool bulk;	/* the window is set, all data is bulk now */
	struct tcp_info info;	/* the sender's last state */
	atomic_bool measuring;	/* the warm-up is over */
	unsigned int answered;	/* requests timed since */
	unsigned int unpinned, copied;	/* writes without a copy; with one */
	uint32_t took_ns[MAX_TIMED];	/* each, from write to last byte */
};

struct result {
	uint64_t bytes, ns;
	double bytes_per_s;
	struct tcp_info info;
	int window_clamp, rcvbuf;
	int peer_port;
};

/* CLOCK_MONOTONIC, ns. */
uint64_t now(void);
socklen_t address_of(struct sockaddr_storage *ss);

/* The sender, to the end of the transfer: as opt says, to what listens there. */
void send_until_reset(struct shared *shared);

/* The receiver: one connection of @listener. */
struct result receive(int listener, struct shared *shared);

#endif
