/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of pattern-load share: flow.c knows sockets and bytes, timer.c
 * what the kernel waits for, pattern-load.c the loop over all flows and the
 * command line.
 */
#ifndef PATTERN_LOAD_H
#define PATTERN_LOAD_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define EXIT_USAGE	2
#define MSEC		1000000ULL	/* in ns */
#define SEC		1000000000ULL

#define MAX_FLOWS	1024
#define MAX_ADDRESSES	2

/* Faults of our own, to see them found, begin behind this position. */
#define PLANT_AT	50000

enum plant { NOTHING, CORRUPT, LOSE, STALL };

struct options {
	const char *from, *to;	/* namespaces; NULL: the current one */
	const char *address[MAX_ADDRESSES];
	int addresses;
	int flows, port;
	uint64_t seed, seconds, grace;
	bool faults;		/* the kernel's allocations fail now and then */
	enum plant plant;
};

extern struct options opt;

/* One direction of a connection: bytes sent by one end, read by the other. */
struct way {
	uint64_t start;		/* position in the pattern */
	uint64_t length, sent, got;
	uint64_t idle;		/* ns without progress, see pattern-load.c */
	uint64_t paused_until;	/* the reader reads nothing before */
	uint64_t overdue;	/* so long its sender's timer should have expired */
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

struct totals {
	uint64_t connections, bytes, zerocopy, retried, longest_idle;
	uint64_t probe_waits;	/* flows that stood still for it */
	uint64_t resets;	/* for want of a TIME-WAIT socket */
	uint64_t shut_windows;	/* by the kernel, for good */
};

extern struct totals total;
extern struct flow flows[MAX_FLOWS];
extern int listener[MAX_ADDRESSES];

void make_pattern(void);
int listen_socket(int n);

/* False if the kernel has no memory or port for it now: try again later. */
bool open_flow(struct flow *f);
void accept_one(int address);
void close_flow(struct flow *f);

void send_some(struct flow *f, int end);
/* Read at @end what the other end sent. */
void read_some(struct flow *f, int end, uint64_t t);
bool way_done(const struct way *w);
/* An error at an end: the kernel's right, and the flow closed; or fatal. */
void end_failed(struct flow *f, int end, const char *what, int error);
void zerocopy_completions(int fd);

/* The timer that runs for an end of a connection; none: all false. */
struct timer {
	bool retransmission, probe;	/* of the zero window */
	bool overdue;			/* it should have expired */
};

struct timer timer_of(const struct flow *f, int end);
/* What the kernel's table has of both ends, to stderr. */
void timer_show(const struct flow *f);

/* NULL: stay. */
void enter_netns(const char *name);

/* Show both ends of a connection and end the program. */
void __attribute__((format(printf, 2, 3), noreturn))
fail(const struct flow *f, const char *format, ...);

#endif /* PATTERN_LOAD_H */
