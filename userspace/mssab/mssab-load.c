// SPDX-License-Identifier: GPL-2.0
/*
 * mssab-load: one bulk TCP transfer between two network namespaces, measured
 * at the receiver; prints one JSON object.  Both ends in one program, so that
 * a cell of an experiment starts and ends without waiting for servers.  Sets
 * nothing but options of its own two sockets.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC 1000000000ULL
#define EXIT_USAGE 2

static struct {
	const char *from, *to;	/* namespaces; NULL: the current one */
	const char *address;	/* of the receiver, IPv4 or IPv6 */
	const char *cc;
	uint64_t warmup_ns, measure_ns;
	long writes;		/* then end; 0: measure by time */
	int port;
	int write_size;
	int rcvbuf;		/* SO_RCVBUF after accept; 0: leave */
	bool nodelay;
} opt = {
	.address = "127.0.0.1",
	.warmup_ns = NSEC_PER_SEC,
	.measure_ns = 2 * NSEC_PER_SEC,
	.port = 5201,
	.write_size = 65536,
};

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void enter_netns(const char *name)
{
	char path[PATH_MAX];
	int fd;

	if (!name)
		return;
	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err(1, "no network namespace %s", name);
	if (setns(fd, CLONE_NEWNET))
		err(1, "cannot enter network namespace %s", name);
	close(fd);
}

static socklen_t address_of(struct sockaddr_storage *ss)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ss;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;

	memset(ss, 0, sizeof(*ss));
	if (inet_pton(AF_INET, opt.address, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(opt.port);
		return sizeof(*in);
	}
	if (inet_pton(AF_INET6, opt.address, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(opt.port);
		return sizeof(*in6);
	}
	errx(EXIT_USAGE, "%s is not an IPv4 or IPv6 address", opt.address);
}

/* Listening before the sender starts, so that connect() cannot be early. */
static int listen_socket(void)
{
	struct sockaddr_storage ss;
	socklen_t len = address_of(&ss);
	int one = 1, fd;

	fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		err(1, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&ss, len))
		err(1, "cannot bind %s port %d", opt.address, opt.port);
	if (listen(fd, 1))
		err(1, "listen");
	return fd;
}

/* All the writes asked for, or until the receiver ends the transfer. */
static void send_data(void)
{
	struct sockaddr_storage ss;
	long left = opt.writes;
	socklen_t len = address_of(&ss);
	char *buf = calloc(1, opt.write_size);
	int one = 1, fd;

	if (!buf)
		err(1, "write size %d", opt.write_size);
	fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		err(1, "socket");
	if (opt.cc && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, opt.cc,
				 strlen(opt.cc)))
		err(1, "congestion control %s", opt.cc);
	if (opt.nodelay)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (struct sockaddr *)&ss, len))
		err(1, "cannot connect to %s port %d", opt.address, opt.port);
	while (write(fd, buf, opt.write_size) >= 0)
		if (opt.writes && !--left)
			return;
	if (errno != ECONNRESET && errno != EPIPE)
		err(1, "write");
}

struct result {
	uint64_t bytes, ns;
	struct tcp_info info;
	int window_clamp;
};

static struct result receive(int listener)
{
	static char buf[1 << 17];
	struct linger reset = { .l_onoff = 1 };
	struct result res = {};
	uint64_t start, t, from = 0;
	socklen_t len;
	ssize_t n;
	int fd;

	fd = accept(listener, NULL, NULL);
	if (fd < 0)
		err(1, "accept");
	if (opt.rcvbuf && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &opt.rcvbuf,
				     sizeof(opt.rcvbuf)))
		err(1, "SO_RCVBUF %d", opt.rcvbuf);

	start = now();
	for (;;) {
		n = read(fd, buf, sizeof(buf));
		if (n < 0)
			err(1, "read");
		t = now();
		if (n == 0) {
			if (res.bytes != (uint64_t)opt.writes * opt.write_size)
				errx(1, "the sender ended early");
			break;
		}
		if (opt.writes) {
			res.bytes += n;
			res.ns = t - start;
			continue;
		}
		if (!from) {
			if (t - start >= opt.warmup_ns)
				from = t;
			continue;
		}
		res.bytes += n;
		res.ns = t - from;
		if (res.ns >= opt.measure_ns)
			break;
	}
	len = sizeof(res.info);
	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &res.info, &len);
	len = sizeof(res.window_clamp);
	getsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &res.window_clamp, &len);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	return res;
}

/* CPU time of both ends, start and end of the processes included. */
static uint64_t cpu_time(void)
{
	struct rusage usage[2];
	uint64_t us = 0;
	int i;

	/* Dead, the sender is in RUSAGE_CHILDREN; the handler may have it. */
	while (wait(NULL) > 0 || errno == EINTR)
		;
	getrusage(RUSAGE_SELF, &usage[0]);
	getrusage(RUSAGE_CHILDREN, &usage[1]);
	for (i = 0; i < 2; i++)
		us += usage[i].ru_utime.tv_usec + usage[i].ru_stime.tv_usec +
		      (usage[i].ru_utime.tv_sec + usage[i].ru_stime.tv_sec) *
		      1000000ULL;
	return us * 1000;
}

static void print_result(const struct result *res)
{
	printf("{\"bytes\": %llu, \"ns\": %llu, \"bytes_per_s\": %.0f, "
	       "\"rcv_ssthresh\": %u, \"window_clamp\": %d, "
	       "\"rcv_mss\": %u, \"segments\": %u, "
	       "\"cpu_ns\": %llu}\n",
	       (unsigned long long)res->bytes, (unsigned long long)res->ns,
	       (double)res->bytes * NSEC_PER_SEC / res->ns,
	       res->info.tcpi_rcv_ssthresh, res->window_clamp,
	       res->info.tcpi_rcv_mss, res->info.tcpi_data_segs_in,
	       (unsigned long long)cpu_time());
	if (fflush(stdout) || ferror(stdout))
		err(1, "standard output");
}

static long number(const char *name, const char *text, long min, long max)
{
	char *end;
	long n;

	errno = 0;
	n = strtol(text, &end, 10);
	if (errno || end == text || *end || n < min || n > max)
		errx(EXIT_USAGE, "--%s %s: wants a number from %ld to %ld",
		     name, text, min, max);
	return n;
}

static void usage(FILE *out)
{
	fprintf(out,
"usage: mssab-load [OPTIONS]\n"
"One bulk transfer between two network namespaces; JSON on stdout.\n"
"  --from NS        namespace of the sender (default: current)\n"
"  --to NS          namespace of the receiver (default: current)\n"
"  --address ADDR   of the receiver, IPv4 or IPv6 (default 127.0.0.1)\n"
"  --port N         TCP port, 1..65535 (default 5201)\n"
"  --warmup-ms N    not counted, 0..3600000 (default 1000)\n"
"  --measure-ms N   counted, 1..3600000 (default 2000)\n"
"  --write N        bytes per write, 1..16777216 (default 65536)\n"
"  --writes N       writes, then end: all of it is measured, from accept\n"
"                   to the last byte (default 0: by time)\n"
"  --rcvbuf N       SO_RCVBUF set after accept, bytes (default: leave)\n"
"  --cc NAME        congestion control of the sender\n"
"  --nodelay        TCP_NODELAY at the sender\n");
}

static void parse(int argc, char **argv)
{
	enum { FROM = 1, TO, ADDRESS, PORT, WARMUP, MEASURE, WRITE, WRITES, RCVBUF,
	       CC, NODELAY };
	static const struct option options[] = {
		{ "from", required_argument, NULL, FROM },
		{ "to", required_argument, NULL, TO },
		{ "address", required_argument, NULL, ADDRESS },
		{ "port", required_argument, NULL, PORT },
		{ "warmup-ms", required_argument, NULL, WARMUP },
		{ "measure-ms", required_argument, NULL, MEASURE },
		{ "write", required_argument, NULL, WRITE },
		{ "writes", required_argument, NULL, WRITES },
		{ "rcvbuf", required_argument, NULL, RCVBUF },
		{ "cc", required_argument, NULL, CC },
		{ "nodelay", no_argument, NULL, NODELAY },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	int c, i = 0;

	while ((c = getopt_long(argc, argv, "h", options, &i)) != -1) {
		const char *name = options[i].name;

		switch (c) {
		case FROM: opt.from = optarg; break;
		case TO: opt.to = optarg; break;
		case ADDRESS: opt.address = optarg; break;
		case PORT: opt.port = number(name, optarg, 1, 65535); break;
		case WARMUP:
			opt.warmup_ns = number(name, optarg, 0, 3600000) *
					1000000ULL;
			break;
		case MEASURE:
			opt.measure_ns = number(name, optarg, 1, 3600000) *
					 1000000ULL;
			break;
		case WRITE:
			opt.write_size = number(name, optarg, 1, 1 << 24);
			break;
		case WRITES:
			opt.writes = number(name, optarg, 0, INT_MAX);
			break;
		case RCVBUF:
			opt.rcvbuf = number(name, optarg, 1, INT_MAX);
			break;
		case CC: opt.cc = optarg; break;
		case NODELAY: opt.nodelay = true; break;
		case 'h': usage(stdout); exit(0);
		default: usage(stderr); exit(EXIT_USAGE);
		}
	}
	if (optind != argc)
		errx(EXIT_USAGE, "unexpected argument %s", argv[optind]);
}

/* A sender that could not start must not leave the receiver waiting. */
static void on_sender_end(int sig)
{
	int status;

	(void)sig;
	if (waitpid(-1, &status, WNOHANG) > 0 && status)
		_exit(1);
}

int main(int argc, char **argv)
{
	struct result res;
	int listener;
	pid_t sender;

	parse(argc, argv);
	if (!opt.from != !opt.to)
		errx(EXIT_USAGE, "--from and --to go together");
	enter_netns(opt.to);
	listener = listen_socket();
	signal(SIGCHLD, on_sender_end);

	sender = fork();
	if (sender < 0)
		err(1, "fork");
	if (!sender) {
		signal(SIGCHLD, SIG_DFL);
		signal(SIGPIPE, SIG_IGN);
		close(listener);
		enter_netns(opt.from);
		send_data();
		_exit(0);
	}
	res = receive(listener);
	print_result(&res);
	return 0;
}
