// SPDX-License-Identifier: GPL-2.0-only
/* Command ping-pong: a fixed number of messages, each answered. */
#include "counted.h"

#include <err.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

static void echo(int listener)
{
	int fd = accept(listener, NULL, NULL);

	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	while (counted_receive(fd, counted.size))
		counted_deliver(fd, counted.size);
}

static void ask(void)
{
	int fd = counted_connect(SOCK_STREAM);
	long i;

	for (i = 0; i < counted.count; i++) {
		counted_deliver(fd, counted.size);
		if (!counted_receive(fd, counted.size))
			errx(1, "the peer has gone");
	}
	close(fd);
}

const struct command pingpong_command = {
	"ping-pong", "A fixed number of messages, each answered by as many bytes.",
	counted_options, counted_run,
	&(const struct counted_load){ SOCK_STREAM, ask, echo },
};
