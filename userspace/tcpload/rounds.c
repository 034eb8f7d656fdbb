// SPDX-License-Identifier: GPL-2.0-only
/*
 * Command rounds: writes over a connection that is open already, so that the
 * timed part has no handshake.  The time includes start and end of the reader,
 * unless the reader is this process (--to).
 */
#include "counted.h"

#include <err.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void must_receive(int fd, long size)
{
	if (!counted_receive(fd, size))
		errx(1, "the peer has gone");
}

/* Both ends in this process: each write is read before the next. */
static void run_alone(int from, int to)
{
	long i;

	for (i = 0; i < counted.count; i++) {
		counted_deliver(from, counted.size);
		must_receive(to, counted.size);
	}
}

static void run_pair(int from, int to)
{
	pid_t child = fork();
	long i;

	if (child < 0)
		err(1, "fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(from);
		for (i = 0; i < counted.count; i++) {
			must_receive(to, counted.size);
			if (counted.answers)
				counted_deliver(to, counted.size);
		}
		counted_deliver(to, 1);
		_exit(0);
	}
	close(to);
	for (i = 0; i < counted.count; i++) {
		counted_deliver(from, counted.size);
		if (counted.answers)
			must_receive(from, counted.size);
	}
	/* The last byte arrives when all was read. */
	must_receive(from, 1);
	waitpid(child, NULL, 0);
}

static int run(const void *load)
{
	int listener, from, to;
	long long begin, packets;

	(void)load;
	counted_begin(5001);
	if (counted.to)
		enter_netns(counted.to);
	listener = bound_socket(counted.address, counted.port, SOCK_STREAM, 0, 1);
	enter_netns(NULL);
	from = counted_connect(SOCK_STREAM);
	to = accept(listener, NULL, NULL);
	if (to < 0)
		err(1, "accept");
	set_option(to, IPPROTO_TCP, TCP_NODELAY, 1);
	packets = counted_packets();
	begin = now();
	if (counted.to)
		run_alone(from, to);
	else
		run_pair(from, to);
	begin = now() - begin;
	packets = counted_packets() - packets;
	printf("{\"ns\": %lld, \"packets\": %lld}\n", begin, packets);
	return finish_output();
}

const struct command rounds_command = {
	"rounds", "A fixed number of writes over one connection.  Another process reads "
	"them, or with --to this one.", counted_options, run, NULL,
};
