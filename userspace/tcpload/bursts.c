// SPDX-License-Identifier: GPL-2.0-only
/*
 * Command bursts: a fixed number of writes over one or more connections in
 * turn; after each burst the sender waits until the peer has read all of it.
 */
#include "counted.h"

#include <err.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

/* The peer: read all flows until each has ended. */
static void sink(int listener)
{
	static struct pollfd flows[FLOWS_MAX];
	long long burst = counted.burst ? counted.burst * counted.size :
					  LLONG_MAX;
	long i, left = counted.flows;
	ssize_t n;

	for (i = 0; i < counted.flows; i++) {
		flows[i].fd = accept(listener, NULL, NULL);
		flows[i].events = POLLIN;
		if (flows[i].fd < 0)
			err(1, "accept");
	}
	while (left) {
		if (counted.flows > 1 && poll(flows, counted.flows, -1) < 0)
			err(1, "poll");
		for (i = 0; i < counted.flows; i++) {
			if (counted.flows > 1 && !flows[i].revents)
				continue;
			n = recv(flows[i].fd, counted_buffer,
				 sizeof(counted_buffer), 0);
			if (n < 0)
				err(1, "recv");
			*counted_received += n;
			if (n && *counted_received % burst == 0 &&
			    write(counted_turns[1], "", 1) != 1)
				err(1, "write");
			if (!n) {
				close(flows[i].fd);
				flows[i].fd = -1; /* poll leaves it out */
				left--;
			}
		}
	}
}

static void send_bursts(void)
{
	static int flows[FLOWS_MAX];
	char byte;
	long i;

	for (i = 0; i < counted.flows; i++)
		flows[i] = counted_connect(SOCK_STREAM);
	for (i = 1; i <= counted.count; i++) {
		counted_deliver(flows[i % counted.flows], counted.size);
		if (counted.burst && i % counted.burst == 0 &&
		    read(counted_turns[0], &byte, 1) != 1)
			errx(1, "the peer failed");
	}
	for (i = 0; i < counted.flows; i++)
		close(flows[i]);
}

const struct command bursts_command = {
	"bursts", "A fixed number of writes; after each burst it waits for the reader.",
	counted_options, counted_run,
	&(const struct counted_load){ SOCK_STREAM, send_bursts, sink },
};
