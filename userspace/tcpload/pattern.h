/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the command pattern share.  pattern-flow.c handles sockets
 * and bytes, pattern-timer.c reads which timer the kernel runs, pattern.c has
 * the loop over all flows and judges their progress.
 */
#ifndef PATTERN_H
#define PATTERN_H

#include "tcpload.h"

#include <netinet/in.h>

#define MSEC		NSEC_PER_MSEC
#define SEC		NSEC_PER_SEC

#define MAX_FLOWS	1024
#define MAX_ADDRESSES	2

/* Injected faults begin after this position. */
#define FAULT_AT	50000

enum fault { NOTHING, CORRUPT, LOSE, STALL };

struct pattern {
	const char *from, *to;	/* namespaces; NULL: the current one */
	const char *address[MAX_ADDRESSES];
	int addresses;
	long flows, port, seed, seconds, grace;
	bool faults;		/* the kernel's allocations fail now and then */
	enum fault inject;
};

extern struct pattern pattern;

/* One direction of a connection: bytes sent by one end, read by the other. */
struct way {
	uint64_t start;		/* position in the pattern */
	unsigned long long length, sent, got;
	unsigned long long idle;		/* ns without progress, see pattern.c */
	uint64_t paused_until;	/* the reader reads nothing before that */
	uint64_t overdue;	/* ns since its sender's timer should have expired */
	bool shut, ended, probe_wait;
};

enum { CLIENT, SERVER };

struct flow {
	unsigned int id;	/* of the connection */
	uint64_t random;
	int address;
	in_port_t port;		/* of the client */
	int fd[2];		/* CLIENT, SERVER; -1: none */
	struct way way[2];	/* sent by CLIENT, sent by SERVER */
	uint64_t idle;		/* while it connects */
	bool zerocopy, corked, moved;
};

/* Bytes of the buffers of received packets of a socket. */
struct memory {
	unsigned int used, limit;
};

struct totals {
	unsigned long long connections, bytes, zerocopy, retried, longest_idle;
	unsigned long long probe_waits;	/* flows that waited for a zero-window probe */
	unsigned long long resets;	/* without memory for a TIME-WAIT socket */
	unsigned long long shut_windows;	/* closed by the kernel permanently */
};

extern struct totals total;
extern struct flow flows[MAX_FLOWS];
extern int listener[MAX_ADDRESSES];

void make_pattern(void);

/* False if the kernel has no memory or port for it now; try again later. */
bool open_flow(struct flow *f);
void accept_one(int address);
void close_flow(struct flow *f);

void send_some(struct flow *f, int end);
/* Read at @end what the other end sent. */
void read_some(struct flow *f, int end, uint64_t t);
bool way_done(const struct way *w);
bool read_memory(int fd, struct memory *m);
/* An error at an end: close the flow if the kernel may do so, or fail. */
void end_failed(struct flow *f, int end, const char *what, int error);

/* The timer that runs for an end of a connection; all false if none does. */
struct timer {
	bool retransmission, probe;	/* of the zero window */
	bool overdue;			/* it should have expired */
};

struct timer timer_of(const struct flow *f, int end);
/* Print the kernel's table entries of both ends to stderr. */
void timer_show(const struct flow *f);

/* Show both ends of a connection and end the program. */
void __attribute__((format(printf, 2, 3), noreturn))
fail(const struct flow *f, const char *format, ...);

#endif /* PATTERN_H */
