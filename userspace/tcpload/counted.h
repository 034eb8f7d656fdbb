/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loads that repeat to the packet, for the commands bursts, ping-pong, churn,
 * datagrams and rounds: a fixed amount, one process per end, nothing that
 * depends on time unless asked for.
 */
#ifndef COUNTED_H
#define COUNTED_H

#include "tcpload.h"

#define FLOWS_MAX 1024
#define COUNTED_SIZE_MAX (1 << 20)
#define COUNTED_SEED "TCPLOAD_SEED"	/* environment: the seed, unless given */
#define COUNTED_SEED_MAX 999

struct counted {
	const char *to;		/* namespace of the peer */
	const char *address;	/* of the peer */
	const char *device;	/* whose packets are counted */
	long seed, port, count, size, flows, burst, rcvbuf, pause_us;
	bool zerocopy, answers;
};

extern struct counted counted;
extern char counted_buffer[COUNTED_SIZE_MAX];
extern long long *counted_received;	/* bytes; shared by both ends */
extern int counted_turns[2];	/* pipe: the peer has read a burst */

/* Packets that the device has sent and received; of lo each packet once. */
long long counted_packets(void);

/* A socket connected to the peer; TCP: with TCP_NODELAY. */
int counted_connect(int type);

/* Receive @size bytes; false at the end of the stream. */
bool counted_receive(int fd, long size);
void counted_deliver(int fd, long size);

/* What a command does at its two ends. */
struct counted_load {
	int type;			/* SOCK_STREAM or SOCK_DGRAM */
	void (*here)(void);
	void (*there)(int fd);		/* the socket the peer listens on */
};

extern const struct option_spec counted_options[];

/*
 * Run a struct counted_load, its second end in a child; print time, packets
 * and bytes.
 */
int counted_run(const void *load);

/* Set seed and port; map counted_received, which both ends share. */
void counted_begin(long first_port);

#endif /* COUNTED_H */
