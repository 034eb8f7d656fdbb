// SPDX-License-Identifier: GPL-2.0
/*
 * workload-load: the traffic of the named workloads (record.py), between this
 * network namespace and that of a peer, so that each repeats to the packet: a
 * fixed amount, one process at each end, nothing that depends on time but what
 * is asked for.  Prints one JSON object: "ns" from the first connection to the
 * last byte, "packets" that the device sent and received meanwhile, "bytes"
 * delivered.  WORKLOAD_SEED (0 to 999) changes what must not matter: the port
 * and the microsecond of the start.
 *
 * usage: workload-load KIND [OPTIONS]; see usage() below
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EXIT_USAGE 2
#define FLOWS_MAX 1024
#define SIZE_MAX_ (1 << 20)
#define NSEC_PER_SEC 1000000000LL

static struct {
	const char *kind, *netns, *address, *device;
	long port, seed, count, size, flows, burst, rcvbuf, pause_us;
	bool zerocopy;
} opt = {
	.netns = "/run/netns/b",
	.address = "10.9.0.2",
	.device = "veth0",
	.count = 1000,
	.size = 1,
	.flows = 1,
};

static char buffer[SIZE_MAX_];
static long long *received;	/* bytes; shared by both ends */
static int turns[2];		/* pipe: the peer has read a burst */

static void usage(FILE *out)
{
	fputs("usage: workload-load KIND [OPTIONS]\n"
	      "  stream            COUNT writes of SIZE, over FLOWS connections in turn\n"
	      "  pingpong          COUNT messages of SIZE, each answered by as many bytes\n"
	      "  churn             COUNT connections: SIZE bytes, an answer, the end\n"
	      "  datagrams         UDP, SIZE bytes each: bursts of 1, 2, 4 ... COUNT\n"
	      "  --netns FILE      the peer's namespace (/run/netns/b)\n"
	      "  --address IPV4    the peer's address (10.9.0.2)\n"
	      "  --device NAME     whose packets are counted (veth0)\n"
	      "  --count N         (1000)\n"
	      "  --size BYTES      up to 1 MiB (1)\n"
	      "  --flows N         up to 1024 (1)\n"
	      "  --burst N         stream: each N writes wait until all is read (0: never)\n"
	      "  --rcvbuf BYTES    SO_RCVBUF of the peer (0: leave)\n"
	      "  --pause US        between bursts (0)\n"
	      "  --zerocopy        send with MSG_ZEROCOPY\n", out);
}

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static void pause_us(long us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

/* Packets that the device has sent and received. */
static long long packets(void)
{
	static const char *const kinds[] = { "rx", "tx" };
	long long sum = 0, n;
	char path[128];
	FILE *f;
	int i;

	for (i = 0; i < 2; i++) {
		snprintf(path, sizeof(path),
			 "/sys/class/net/%s/statistics/%s_packets", opt.device,
			 kinds[i]);
		f = fopen(path, "r");
		if (!f || fscanf(f, "%lld", &n) != 1)
			err(1, "%s", path);
		fclose(f);
		sum += n;
	}
	return sum;
}

/* A socket at the peer's end: made in its namespace, bound to its port. */
static int peer_socket(int type)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET, .sin_port = htons(opt.port),
	};
	int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int there = open(opt.netns, O_RDONLY | O_CLOEXEC);
	int fd, one = 1, rcvbuf = opt.rcvbuf;

	if (home < 0 || there < 0)
		err(1, "%s", opt.netns);
	if (setns(there, CLONE_NEWNET))
		err(1, "cannot enter %s", opt.netns);
	fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one,
				 sizeof(one)) ||
	    (rcvbuf && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf,
				  sizeof(rcvbuf))))
		err(1, "peer's socket");
	if (bind(fd, (void *)&at, sizeof(at)))
		err(1, "cannot bind port %ld", opt.port);
	if (setns(home, CLONE_NEWNET))
		err(1, "setns");
	close(home);
	close(there);
	return fd;
}

static int connected(int type)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(opt.port),
	};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0), one = 1;

	inet_pton(AF_INET, opt.address, &to.sin_addr);
	if (fd < 0 || connect(fd, (void *)&to, sizeof(to)))
		err(1, "cannot connect to %s port %ld", opt.address, opt.port);
	if (type == SOCK_STREAM &&
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		err(1, "TCP_NODELAY");
	if (opt.zerocopy &&
	    setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)))
		err(1, "SO_ZEROCOPY");
	return fd;
}

/* False at the end of the stream. */
static bool receive(int fd, long size)
{
	ssize_t n;

	while (size) {
		n = recv(fd, buffer, size, 0);
		if (n < 0)
			err(1, "recv");
		if (!n)
			return false;
		*received += n;
		size -= n;
	}
	return true;
}

/* The kernel says here which buffers it needs no longer. */
static void reap(int fd)
{
	char control[128];
	struct msghdr msg;

	do {
		msg = (struct msghdr){ .msg_control = control,
				       .msg_controllen = sizeof(control) };
	} while (recvmsg(fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0);
}

static void deliver(int fd, long size)
{
	const char *from = buffer;
	ssize_t n;

	while (size) {
		n = send(fd, from, size, opt.zerocopy ? MSG_ZEROCOPY : 0);
		if (n < 0 && errno == ENOBUFS && opt.zerocopy) {
			reap(fd);
			continue;
		}
		if (n < 0)
			err(1, "send");
		from += n;
		size -= n;
	}
	if (opt.zerocopy)
		reap(fd);
}

/* --- The peer -------------------------------------------------------------- */

/* Reads all flows until each has ended. */
static void sink(int listener)
{
	static struct pollfd flows[FLOWS_MAX];
	long long burst = opt.burst ? opt.burst * opt.size : LLONG_MAX;
	long i, left = opt.flows;
	ssize_t n;

	for (i = 0; i < opt.flows; i++) {
		flows[i].fd = accept(listener, NULL, NULL);
		flows[i].events = POLLIN;
		if (flows[i].fd < 0)
			err(1, "accept");
	}
	while (left) {
		if (opt.flows > 1 && poll(flows, opt.flows, -1) < 0)
			err(1, "poll");
		for (i = 0; i < opt.flows; i++) {
			if (opt.flows > 1 && !flows[i].revents)
				continue;
			n = recv(flows[i].fd, buffer, sizeof(buffer), 0);
			if (n < 0)
				err(1, "recv");
			*received += n;
			if (n && *received % burst == 0 &&
			    write(turns[1], "", 1) != 1)
				err(1, "write");
			if (!n) {
				close(flows[i].fd);
				flows[i].fd = -1; /* poll leaves it out */
				left--;
			}
		}
	}
}

static void echo(int listener)
{
	int fd = accept(listener, NULL, NULL), one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	while (receive(fd, opt.size))
		deliver(fd, opt.size);
}

static void answer_each(int listener)
{
	long i;
	int fd;

	for (i = 0; i < opt.count; i++) {
		fd = accept(listener, NULL, NULL);
		if (fd < 0 || !receive(fd, opt.size))
			err(1, "accept");
		deliver(fd, opt.size);
		close(fd);
	}
}

/* Until it is killed. */
static void take_datagrams(int fd)
{
	ssize_t n;

	while ((n = recv(fd, buffer, sizeof(buffer), 0)) >= 0)
		*received += n;
	err(1, "recv");
}

/* --- This end -------------------------------------------------------------- */

static void stream(void)
{
	static int flows[FLOWS_MAX];
	char byte;
	long i;

	for (i = 0; i < opt.flows; i++)
		flows[i] = connected(SOCK_STREAM);
	for (i = 1; i <= opt.count; i++) {
		deliver(flows[i % opt.flows], opt.size);
		if (opt.burst && i % opt.burst == 0 &&
		    read(turns[0], &byte, 1) != 1)
			errx(1, "the peer failed");
	}
	for (i = 0; i < opt.flows; i++)
		close(flows[i]);
}

static void pingpong(void)
{
	int fd = connected(SOCK_STREAM);
	long i;

	for (i = 0; i < opt.count; i++) {
		deliver(fd, opt.size);
		if (!receive(fd, opt.size))
			errx(1, "the peer has gone");
	}
	close(fd);
}

static void churn(void)
{
	long i;
	int fd;

	for (i = 0; i < opt.count; i++) {
		fd = connected(SOCK_STREAM);
		deliver(fd, opt.size);
		while (receive(fd, sizeof(buffer)))
			;
		close(fd);
	}
}

static void datagrams(void)
{
	int fd = connected(SOCK_DGRAM);
	long burst, i;

	for (burst = 1; burst <= opt.count; burst *= 2) {
		for (i = 0; i < burst; i++)
			deliver(fd, opt.size);
		pause_us(opt.pause_us);
	}
}

static const struct kind {
	const char *name;
	int type;
	void (*here)(void);
	void (*there)(int fd);
} kinds[] = {
	{ "stream", SOCK_STREAM, stream, sink },
	{ "pingpong", SOCK_STREAM, pingpong, echo },
	{ "churn", SOCK_STREAM, churn, answer_each },
	{ "datagrams", SOCK_DGRAM, datagrams, take_datagrams },
};

static void run(const struct kind *k)
{
	long long begin, sent;
	int fd = peer_socket(k->type), done[2], status = 0;
	pid_t peer;
	char byte;

	if (k->type == SOCK_STREAM && listen(fd, FLOWS_MAX))
		err(1, "listen");
	if (pipe(done) || pipe(turns))
		err(1, "pipe");
	peer = fork();
	if (peer < 0)
		err(1, "fork");
	if (!peer) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		k->there(fd);
		/* What a process costs to end is not measured. */
		_exit(write(done[1], "", 1) != 1);
	}
	close(fd);
	close(done[1]);
	close(turns[1]);
	pause_us(37 * opt.seed);
	sent = packets();
	begin = now();
	k->here();
	if (k->type == SOCK_DGRAM)
		kill(peer, SIGTERM);
	else if (read(done[0], &byte, 1) != 1)
		errx(1, "the peer failed");
	begin = now() - begin;
	sent = packets() - sent;
	if (waitpid(peer, &status, 0) != peer)
		err(1, "wait");
	printf("{\"ns\": %lld, \"packets\": %lld, \"bytes\": %lld}\n", begin,
	       sent, *received);
}

static long number(const char *text, const char *name, long min, long max)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < min || n > max)
		errx(EXIT_USAGE, "%s takes %ld to %ld, not %s", name, min, max,
		     text);
	return n;
}

static void read_options(int argc, char **argv)
{
	static const struct option options[] = {
		{ "netns", 1, NULL, 'n' }, { "address", 1, NULL, 'a' },
		{ "device", 1, NULL, 'd' }, { "count", 1, NULL, 'c' },
		{ "size", 1, NULL, 's' }, { "flows", 1, NULL, 'f' },
		{ "burst", 1, NULL, 'b' }, { "rcvbuf", 1, NULL, 'r' },
		{ "pause", 1, NULL, 'u' }, { "zerocopy", 0, NULL, 'z' },
		{ "help", 0, NULL, 'h' },
		{ 0 }
	};
	const char *seed = getenv("WORKLOAD_SEED");
	struct in_addr any;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'n': opt.netns = optarg; break;
		case 'a': opt.address = optarg; break;
		case 'd': opt.device = optarg; break;
		case 'c':
			opt.count = number(optarg, "--count", 1, 1 << 30);
			break;
		case 's':
			opt.size = number(optarg, "--size", 1, SIZE_MAX_);
			break;
		case 'f':
			opt.flows = number(optarg, "--flows", 1, FLOWS_MAX);
			break;
		case 'b':
			opt.burst = number(optarg, "--burst", 0, 1 << 30);
			break;
		case 'r':
			opt.rcvbuf = number(optarg, "--rcvbuf", 0, 1 << 30);
			break;
		case 'u':
			opt.pause_us = number(optarg, "--pause", 0, 1000000);
			break;
		case 'z': opt.zerocopy = true; break;
		case 'h':
			usage(stdout);
			exit(0);
		default:
			exit(EXIT_USAGE);
		}
	}
	if (optind + 1 != argc) {
		usage(stderr);
		exit(EXIT_USAGE);
	}
	opt.kind = argv[optind];
	opt.seed = seed ? number(seed, "WORKLOAD_SEED", 0, 999) : 0;
	opt.port = 5000 + 7 * opt.seed;
	if (inet_pton(AF_INET, opt.address, &any) != 1)
		errx(EXIT_USAGE, "%s is no IPv4 address", opt.address);
}

int main(int argc, char **argv)
{
	size_t i;

	read_options(argc, argv);
	received = mmap(NULL, sizeof(*received), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (received == MAP_FAILED)
		err(1, "mmap");
	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (!strcmp(opt.kind, kinds[i].name)) {
			run(&kinds[i]);
			return fflush(stdout) ? 1 : 0;
		}
	}
	errx(EXIT_USAGE, "no kind of load is called %s", opt.kind);
}
