// SPDX-License-Identifier: GPL-2.0
/*
 * The loads of the overhead benchmark: TCP between two sockets over a given
 * address, for a given amount, with nothing else in the timed part.  Prints
 * the nanoseconds it took (in a deterministic guest: instructions) and how
 * many packets the device sent meanwhile.
 *
 * usage: overhead-load pingpong|write ADDRESS DEVICE ROUNDS SIZE [NETNS]
 *   pingpong  ROUNDS messages of SIZE bytes, each answered by as many; the
 *             ends are two processes
 *   write     ROUNDS writes of SIZE bytes; the reader is another process, or,
 *             with NETNS, a socket of that namespace in the same one
 */
#include <arpa/inet.h>
#include <err.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char buffer[1 << 16];

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Packets the device sent or received: both ends' packets of a transfer. */
static long long packets(const char *device)
{
	static const char *const kinds[] = { "rx", "tx" };
	long long sum = 0, n;
	char path[128];
	FILE *f;
	int i;

	/* Over loopback what is sent is received: count it once. */
	for (i = !strcmp(device, "lo"); i < 2; i++) {
		snprintf(path, sizeof(path),
			 "/sys/class/net/%s/statistics/%s_packets", device,
			 kinds[i]);
		f = fopen(path, "r");
		if (!f || fscanf(f, "%lld", &n) != 1)
			err(1, "%s", path);
		fclose(f);
		sum += n;
	}
	return sum;
}

static void enter(int fd)
{
	if (setns(fd, CLONE_NEWNET))
		err(1, "setns");
}

static void receive(int fd, size_t size)
{
	ssize_t n;

	while (size) {
		n = recv(fd, buffer, size < sizeof(buffer) ? size :
			 sizeof(buffer), 0);
		if (n <= 0)
			err(1, "recv");
		size -= n;
	}
}

static void deliver(int fd, size_t size)
{
	ssize_t n;

	for (; size; size -= n) {
		n = send(fd, buffer, size, 0);
		if (n <= 0)
			err(1, "send");
	}
}

/* Both ends in this process: what is written is read before the next. */
static void run_alone(int from, int to, long rounds, size_t size)
{
	while (rounds--) {
		deliver(from, size);
		receive(to, size);
	}
}

static void run_pair(int from, int to, long rounds, size_t size, int answers)
{
	pid_t child = fork();
	long i;

	if (child < 0)
		err(1, "fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(from);
		for (i = 0; i < rounds; i++) {
			receive(to, size);
			if (answers)
				deliver(to, size);
		}
		deliver(to, 1);
		_exit(0);
	}
	close(to);
	for (i = 0; i < rounds; i++) {
		deliver(from, size);
		if (answers)
			receive(from, size);
	}
	/* The last byte says that all was read. */
	receive(from, 1);
	waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	int ping, listener, from, to, one = 1, home, there = -1;
	socklen_t len = sizeof(at);
	long long begin, sent;
	long rounds;
	size_t size;

	if (argc < 6)
		errx(2, "usage: overhead-load pingpong|write ADDRESS DEVICE "
		     "ROUNDS SIZE [NETNS]");
	ping = !strcmp(argv[1], "pingpong");
	rounds = atol(argv[4]);
	size = atol(argv[5]);
	if (size > sizeof(buffer) || inet_pton(AF_INET, argv[2],
					       &at.sin_addr) != 1)
		errx(2, "SIZE up to %zu, and an IPv4 address",
		     sizeof(buffer));
	home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (argc > 6) {
		there = open(argv[6], O_RDONLY | O_CLOEXEC);
		enter(there);
	}
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	at.sin_port = htons(5001);
	if (bind(listener, (void *)&at, len) || listen(listener, 1))
		err(1, "listen");
	if (there >= 0)
		enter(home);
	from = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (connect(from, (void *)&at, len))
		err(1, "connect");
	to = accept(listener, NULL, NULL);
	if (to < 0)
		err(1, "accept");
	setsockopt(from, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(to, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	sent = packets(argv[3]);
	begin = now();
	if (there >= 0)
		run_alone(from, to, rounds, size);
	else
		run_pair(from, to, rounds, size, ping);
	begin = now() - begin;
	sent = packets(argv[3]) - sent;
	printf("%lld %lld\n", begin, sent);
	return fflush(stdout) != 0;
}
