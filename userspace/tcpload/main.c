// SPDX-License-Identifier: GPL-2.0
/*
 * mssab-load: one bulk TCP transfer between two network namespaces, measured
 * at the receiver; prints one JSON object.  Both ends in one program, so that
 * a cell of an experiment starts and ends without waiting for servers.  Sets
 * nothing but options of its own two sockets.
 */
#define _GNU_SOURCE
#include "load.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct options opt = {
	.address = "127.0.0.1",
	.warmup_ns = NSEC_PER_SEC,
	.measure_ns = 2 * NSEC_PER_SEC,
	.port = 5201,
	.write_size = 65536,
	.sender_cpu = -1,
	.receiver_cpu = -1,
};

uint64_t now(void)
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

socklen_t address_of(struct sockaddr_storage *ss)
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

/* This process, on that CPU from now on; -1: wherever it likes. */
static void pin(int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "cannot run on CPU %d", cpu);
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

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Below which a share of the requests came to be answered, ns; 0: none did. */
static uint32_t latency(const struct shared *shared, double share)
{
	if (!shared->answered)
		return 0;
	return shared->took_ns[(unsigned int)(share * (shared->answered - 1))];
}

/*
 * CPU time of one end, start and end of its process included; ns.  The receiver
 * is this process, the sender its child.
 */
static unsigned long long cpu_time(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec +
		(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000ULL) *
	       1000;
}

static void print_result(const struct result *res,
			 struct shared *shared, uint64_t began)
{
	const struct tcp_info *sender = &shared->info;
	unsigned long long receiver_ns = cpu_time(RUSAGE_SELF);
	unsigned long long sender_ns = cpu_time(RUSAGE_CHILDREN);

	qsort(shared->took_ns, shared->answered, sizeof(*shared->took_ns),
	      by_size);
	printf("{\"bytes\": %llu, \"ns\": %llu, \"bytes_per_s\": %.0f, "
	       "\"rcv_ssthresh\": %u, \"window_clamp\": %d, "
	       "\"rcvbuf\": %d, \"rcv_mss\": %u, \"segments\": %u, "
	       "\"cpu_ns\": %llu, \"cpu_sender_ns\": %llu, "
	       "\"cpu_receiver_ns\": %llu, \"wall_ns\": %llu, "
	       "\"snd_mss\": %u, \"min_rtt_us\": %u, \"snd_cwnd\": %u, "
	       "\"retransmits\": %u, \"received\": %llu, "
	       "\"retransmitted\": %llu, \"sent_segments\": %u, "
	       "\"rtt_us\": %u, \"sender_port\": %d, \"answered\": %u, "
	       "\"latency_p50_ns\": %u, \"latency_p99_ns\": %u, "
	       "\"zerocopy_sent\": %u, \"zerocopy_copied\": %u}\n",
	       (unsigned long long)res->bytes, (unsigned long long)res->ns,
	       res->bytes_per_s,
	       res->info.tcpi_rcv_ssthresh, res->window_clamp, res->rcvbuf,
	       res->info.tcpi_rcv_mss, res->info.tcpi_data_segs_in,
	       sender_ns + receiver_ns, sender_ns, receiver_ns,
	       (unsigned long long)(now() - began), sender->tcpi_snd_mss,
	       sender->tcpi_min_rtt, sender->tcpi_snd_cwnd,
	       sender->tcpi_total_retrans,
	       (unsigned long long)res->info.tcpi_bytes_received,
	       (unsigned long long)sender->tcpi_bytes_retrans,
	       sender->tcpi_data_segs_out, sender->tcpi_rtt, res->peer_port,
	       shared->answered, latency(shared, 0.5),
	       latency(shared, 0.99), shared->unpinned, shared->copied);
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
"  --request N      requests and answers of N bytes instead of bulk, 1..131072\n"
"  --writes N       writes, then end: all of it is measured, from accept\n"
"                   to the last byte (default 0: by time)\n"
"  --rcvbuf N       SO_RCVBUF set after accept, bytes (default: leave)\n"
"  --window N       bytes the receiver offers (SO_RCVBUFFORCE and\n"
"                   TCP_WINDOW_CLAMP, set after accept), 4..2147483647\n"
"  --open N         bytes to send before that, a multiple of 16384 (default 0)\n"
"  --align-ms N     connect when the clock is a multiple of N ms, 0..10000\n"
"  --phase-us N     and so much later, 0..10000000\n"
"  --cc NAME        congestion control of the sender\n"
"  --nodelay        TCP_NODELAY at the sender\n"
"  --zerocopy       bulk with MSG_ZEROCOPY: zerocopy_sent were sent so, and\n"
"                   zerocopy_copied by a copy after all\n"
"  --sender-cpu N   the CPU that the sender runs on, 0..1023 (default: any)\n"
"  --receiver-cpu N and the receiver\n");
}

static void parse(int argc, char **argv)
{
	enum { FROM = 1, TO, ADDRESS, PORT, WARMUP, MEASURE, WRITE, WRITES,
	       REQUEST, RCVBUF, WINDOW, OPEN, ALIGN, PHASE, CC, NODELAY,
	       ZEROCOPY, SENDER_CPU, RECEIVER_CPU };
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
		{ "window", required_argument, NULL, WINDOW },
		{ "open", required_argument, NULL, OPEN },
		{ "request", required_argument, NULL, REQUEST },
		{ "align-ms", required_argument, NULL, ALIGN },
		{ "phase-us", required_argument, NULL, PHASE },
		{ "cc", required_argument, NULL, CC },
		{ "nodelay", no_argument, NULL, NODELAY },
		{ "zerocopy", no_argument, NULL, ZEROCOPY },
		{ "sender-cpu", required_argument, NULL, SENDER_CPU },
		{ "receiver-cpu", required_argument, NULL, RECEIVER_CPU },
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
		case WINDOW:
			opt.window = number(name, optarg, 4, INT_MAX);
			break;
		case OPEN:
			opt.open = number(name, optarg, 0, 1 << 30) & ~16383;
			break;
		case REQUEST:
			opt.request = number(name, optarg, 1, 1 << 17);
			break;
		case ALIGN:
			opt.align_ns = number(name, optarg, 0, 10000) *
				       1000000ULL;
			break;
		case PHASE:
			opt.phase_ns = number(name, optarg, 0, 10000000) *
				       1000ULL;
			break;
		case CC: opt.cc = optarg; break;
		case NODELAY: opt.nodelay = true; break;
		case ZEROCOPY: opt.zerocopy = true; break;
		case SENDER_CPU:
			opt.sender_cpu = number(name, optarg, 0, 1023);
			break;
		case RECEIVER_CPU:
			opt.receiver_cpu = number(name, optarg, 0, 1023);
			break;
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
	struct shared *shared;
	struct result res;
	uint64_t began = now();
	int listener;
	pid_t sender;

	parse(argc, argv);
	if (!opt.from != !opt.to)
		errx(EXIT_USAGE, "--from and --to go together");
	if (opt.window && (opt.rcvbuf || opt.writes))
		errx(EXIT_USAGE, "--window goes with neither --rcvbuf nor --writes");
	if (opt.zerocopy && opt.request)
		errx(EXIT_USAGE, "--zerocopy is of bulk; leave out --request");
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		err(1, "mmap");
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
		pin(opt.sender_cpu);
		enter_netns(opt.from);
		send_until_reset(shared);
		_exit(0);
	}
	pin(opt.receiver_cpu);
	res = receive(listener, shared);
	signal(SIGCHLD, SIG_DFL);
	while (waitpid(sender, NULL, 0) < 0 && errno == EINTR)
		;
	print_result(&res, shared, began);
	return 0;
}
