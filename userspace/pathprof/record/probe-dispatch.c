// SPDX-License-Identifier: GPL-2.0-only
/*
 * Times system calls that pass hooks and reach no network: a datagram between
 * two sockets of ours, a write to a TCP socket that is not connected.
 */
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "record/probe-dispatch.h"

#define BATCHES	64	/* the least of them: others may interrupt */
#define CALLS	8	/* so many datagrams fit into a socket's queue */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Reads of what was written before; false if that cannot be done. */
static bool read_batch(const int *fd, uint64_t *ns)
{
	bool done = true;
	char byte = 0;
	int i;

	for (i = 0; i < CALLS; i++)
		done &= send(fd[0], &byte, 1, MSG_DONTWAIT) == 1;
	*ns = now_ns();
	for (i = 0; i < CALLS; i++)
		done &= recv(fd[1], &byte, 1, MSG_DONTWAIT) == 1;
	*ns = now_ns() - *ns;
	return done;
}

uint64_t dispatch__events(void)
{
	uint64_t least = UINT64_MAX, ns;
	int fd[2], i;

	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fd))
		return 0;
	for (i = 0; i < BATCHES && read_batch(fd, &ns); i++)
		if (ns < least)
			least = ns;
	close(fd[0]);
	close(fd[1]);
	return i < BATCHES ? 0 : least / CALLS;
}

uint64_t dispatch__function(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), i, j;
	uint64_t least = UINT64_MAX, ns;
	char byte = 0;

	if (fd < 0)
		return 0;
	for (i = 0; i < BATCHES; i++) {
		ns = now_ns();
		/* Refused, but by the function that is hooked. */
		for (j = 0; j < CALLS; j++)
			send(fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		ns = now_ns() - ns;
		if (ns < least)
			least = ns;
	}
	close(fd);
	return least / CALLS;
}
