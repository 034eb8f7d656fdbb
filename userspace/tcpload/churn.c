// SPDX-License-Identifier: GPL-2.0-only
/* Command churn: a fixed number of connections, one after the other. */
#include "counted.h"

#include <err.h>
#include <unistd.h>

static void answer_each(int listener)
{
	long i;
	int fd;

	for (i = 0; i < counted.count; i++) {
		fd = accept(listener, NULL, NULL);
		if (fd < 0 || !counted_receive(fd, counted.size))
			err(1, "accept");
		counted_deliver(fd, counted.size);
		close(fd);
	}
}

static void ask_each(void)
{
	long i;
	int fd;

	for (i = 0; i < counted.count; i++) {
		fd = counted_connect(SOCK_STREAM);
		counted_deliver(fd, counted.size);
		while (counted_receive(fd, sizeof(counted_buffer)))
			;
		close(fd);
	}
}

const struct command churn_command = {
	"churn", "A fixed number of connections: a message, an answer, the end.",
	counted_options, counted_run,
	&(const struct counted_load){ SOCK_STREAM, ask_each, answer_each },
};
