// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine of loads that repeat to the packet: starts the peer, takes the
 * time from the first connection to the last byte, and counts the packets of a
 * device meanwhile.  Prints one JSON object.
 */
#include "counted.h"

#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct counted counted = {
	.address = "127.0.0.1",
	.device = "lo",
	.count = 1000,
	.size = 1,
	.seed = -1,
	.flows = 1,
};

const struct option_spec counted_options[] = {
	{ "to", "NS", "network namespace of the peer (current)", .word = &counted.to },
	{ "address", "ADDR", "address of the peer, IPv4 (127.0.0.1)", .word = &counted.address },
	{ "device", "NAME", "interface whose packets are counted (lo)", .word = &counted.device },
	{ "count", "N", "number of writes, messages, connections or datagrams",
	  NUMBER(counted.count, 1, 1 << 30) },
	{ "size", "N", "bytes in each", NUMBER(counted.size, 1, COUNTED_SIZE_MAX) },
	{ "seed", "N", "nuisance seed: sets the port (5000 + 7 N) and the microsecond "
	  "of the start (" COUNTED_SEED ", or 0)", NUMBER(counted.seed, 0, COUNTED_SEED_MAX) },
	{ "rcvbuf", "N", "SO_RCVBUF of the peer", NUMBER(counted.rcvbuf, 1, 1 << 30) },
	{ "zerocopy", NULL, "send with MSG_ZEROCOPY", .flag = &counted.zerocopy },
	{ "flows", "N", "bursts: number of connections, written in turn",
	  NUMBER(counted.flows, 1, FLOWS_MAX) },
	{ "burst", "N", "bursts: writes per burst; 0: one burst",
	  NUMBER(counted.burst, 0, 1 << 30) },
	{ "pause", "US", "datagrams: pause between bursts", NUMBER(counted.pause_us, 0, 1000000) },
	{ "answers", NULL, "rounds: each write is answered by as many bytes",
	  .flag = &counted.answers },
	{}
};

char counted_buffer[COUNTED_SIZE_MAX];
int counted_turns[2];
long long *counted_received;

void counted_begin(long first_port)
{
	const char *text = getenv(COUNTED_SEED);
	char *end = "";

	/* By the environment, command lines of different seeds are equal. */
	if (counted.seed < 0)
		counted.seed = text ? strtol(text, &end, 10) : 0;
	if (*end || counted.seed < 0 || counted.seed > COUNTED_SEED_MAX)
		errx(EXIT_USAGE, COUNTED_SEED "=%s: wants a number from 0 to %d",
		     text, COUNTED_SEED_MAX);
	counted.port = first_port + 7 * counted.seed;
	counted_received = mmap(NULL, sizeof(*counted_received),
				PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counted_received == MAP_FAILED)
		err(1, "mmap");
}

long long counted_packets(void)
{
	static const char *const kinds[] = { "rx", "tx" };
	long long sum = 0, n;
	char path[128];
	FILE *f;
	int i;

	/* Over loopback every packet sent is received: count it once. */
	for (i = !strcmp(counted.device, "lo"); i < 2; i++) {
		snprintf(path, sizeof(path),
			 "/sys/class/net/%s/statistics/%s_packets",
			 counted.device, kinds[i]);
		f = fopen(path, "r");
		if (!f || fscanf(f, "%lld", &n) != 1)
			err(1, "%s", path);
		fclose(f);
		sum += n;
	}
	return sum;
}

int counted_connect(int type)
{
	struct sockaddr_storage to;
	socklen_t len = address_of(counted.address, counted.port, &to);
	int fd = socket(to.ss_family, type | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (void *)&to, len))
		err(1, "cannot connect to %s port %ld", counted.address,
		    counted.port);
	if (type == SOCK_STREAM)
		set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	if (counted.zerocopy)
		set_option(fd, SOL_SOCKET, SO_ZEROCOPY, 1);
	return fd;
}

bool counted_receive(int fd, long size)
{
	ssize_t n;

	while (size) {
		n = recv(fd, counted_buffer, size, 0);
		if (n < 0)
			err(1, "recv");
		if (!n)
			return false;
		*counted_received += n;
		size -= n;
	}
	return true;
}

void counted_deliver(int fd, long size)
{
	const char *from = counted_buffer;
	ssize_t n;

	while (size) {
		n = send(fd, from, size, counted.zerocopy ? MSG_ZEROCOPY : 0);
		if (n < 0 && errno == ENOBUFS && counted.zerocopy) {
			reap_zerocopy(fd, NULL, NULL);
			continue;
		}
		if (n < 0)
			err(1, "send");
		from += n;
		size -= n;
	}
	if (counted.zerocopy)
		reap_zerocopy(fd, NULL, NULL);
}

int counted_run(const void *arg)
{
	const struct counted_load *load = arg;
	int fd, done[2], status = 0;
	long long begin, packets;
	pid_t peer;
	char byte;

	counted_begin(5000);
	if (counted.to)
		enter_netns(counted.to);
	/* Bound to no address: the lookup of UDP sockets depends on it. */
	fd = bound_socket(NULL, counted.port, load->type, counted.rcvbuf,
			  load->type == SOCK_STREAM ? FLOWS_MAX : 0);
	enter_netns(NULL);
	if (pipe(done) || pipe(counted_turns))
		err(1, "pipe");
	peer = fork();
	if (peer < 0)
		err(1, "fork");
	if (!peer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		load->there(fd);
		/* The end of a process is not measured. */
		_exit(write(done[1], "", 1) != 1);
	}
	close(fd);
	close(done[1]);
	close(counted_turns[1]);
	pause_us(37 * counted.seed);
	packets = counted_packets();
	begin = now();
	load->here();
	if (load->type == SOCK_DGRAM)
		kill(peer, SIGTERM);
	else if (read(done[0], &byte, 1) != 1)
		errx(1, "the peer failed");
	begin = now() - begin;
	packets = counted_packets() - packets;
	if (waitpid(peer, &status, 0) != peer)
		err(1, "wait");
	printf("{\"ns\": %lld, \"packets\": %lld, \"bytes\": %lld}\n", begin,
	       packets, *counted_received);
	return finish_output();
}
