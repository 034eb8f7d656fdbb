// SPDX-License-Identifier: GPL-2.0-only
/* Command datagrams: UDP in bursts of 1, 2, 4 and so on. */
#include "counted.h"

#include <err.h>

/* The peer, until it is killed. */
static void take(int fd)
{
	ssize_t n;

	while ((n = recv(fd, counted_buffer, sizeof(counted_buffer), 0)) >= 0)
		*counted_received += n;
	err(1, "recv");
}

static void send_bursts(void)
{
	int fd = counted_connect(SOCK_DGRAM);
	long burst, i;

	for (burst = 1; burst <= counted.count; burst *= 2) {
		for (i = 0; i < burst; i++)
			counted_deliver(fd, counted.size);
		pause_us(counted.pause_us);
	}
}

const struct command datagrams_command = {
	"datagrams", "UDP datagrams in bursts of 1, 2, 4 and so on up to --count.",
	counted_options, counted_run,
	&(const struct counted_load){ SOCK_DGRAM, send_bursts, take },
};
