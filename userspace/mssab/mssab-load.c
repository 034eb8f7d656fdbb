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
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC 1000000000ULL
#define EXIT_USAGE 2
#define MAX_TIMED (1 << 20)	/* requests; later ones are not timed */
#define BUF_SIZE (1 << 24)	/* the largest write */

static struct {
	const char *from, *to;	/* namespaces; NULL: the current one */
	const char *address;	/* of the receiver, IPv4 or IPv6 */
	const char *cc;
	uint64_t warmup_ns, measure_ns;
	long writes;		/* then end; 0: measure by time */
	int port;
	int write_size;
	int rcvbuf;		/* SO_RCVBUF after accept; 0: leave */
	int window;		/* bytes the receiver shall offer; 0: leave */
	int open;		/* bytes before the window is set */
	uint64_t align_ns, phase_ns;	/* when to connect; 0: at once */
	int request;		/* bytes of request and answer; 0: bulk */
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

/* A line through (time, bytes), fitted by least squares. */
struct line {
	double n, t, b, tt, tb;
};

static void line_add(struct line *line, double t, double b)
{
	line->n++;
	line->t += t;
	line->b += b;
	line->tt += t * t;
	line->tb += t * b;
}

static double line_slope(const struct line *line)
{
	return (line->n * line->tb - line->t * line->b) /
	       (line->n * line->tt - line->t * line->t);
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

/* What the two ends tell each other; they are processes of one program. */
struct shared {
	atomic_ullong sent;	/* bytes the sender wrote while it sinks */
	atomic_uint window;	/* what the receiver offers, bytes; 0: unset */
	atomic_bool bulk;	/* the window is set, all data is bulk now */
	struct tcp_info info;	/* the sender's last state */
	atomic_bool measuring;	/* the warm-up is over */
	unsigned int answered;	/* requests timed since */
	uint32_t took_ns[MAX_TIMED];	/* each, from write to last byte */
};

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

/* More than any window the open phase leaves. */
#define SINK_MAX	(16 << 20)

/*
 * A window, once offered, is not taken back, and what comes of it would not
 * fit the smaller buffer.  Use it up in pieces that do, each waited for.
 */
static void sink_window(int fd, struct shared *shared, const char *buf)
{
	int piece = opt.window / 4 < 16384 ? opt.window / 4 : 16384;
	socklen_t len = sizeof(shared->info);
	char byte;

	/* Less than the header field's unit would be rounded up again. */
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &shared->info, &len))
		err(1, "TCP_INFO");
	if (piece < 1 << shared->info.tcpi_snd_wscale)
		piece = 1 << shared->info.tcpi_snd_wscale;
	/* The first piece may come before the window is set. */
	do {
		shared->sent += piece;
		if (write(fd, buf, piece) != piece || read(fd, &byte, 1) != 1)
			err(1, "the receiver ended early");
		if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &shared->info, &len))
			err(1, "TCP_INFO");
		if (shared->sent > SINK_MAX)
			errx(1, "the sender is offered %u bytes, not %u",
			     shared->info.tcpi_snd_wnd, shared->window);
	} while (!shared->window || shared->info.tcpi_snd_wnd >=
		 shared->window + (2U << shared->info.tcpi_snd_wscale));
}

/* Requests until the receiver ends it, the next after the answer. */
static void ask(int fd, struct shared *shared, char *buf)
{
	uint64_t start, took;
	ssize_t n = 0;
	bool timed;
	int left;

	while (n >= 0) {
		timed = shared->measuring && shared->answered < MAX_TIMED;
		start = now();
		if (write(fd, buf, opt.request) != opt.request)
			return;
		for (left = opt.request; left > 0 && n >= 0; left -= n) {
			n = read(fd, buf, left);
			if (!n)
				return;
		}
		took = now() - start;
		if (timed && n >= 0)
			shared->took_ns[shared->answered++] =
				took < UINT32_MAX ? took : UINT32_MAX;
	}
}

/* All the writes asked for, or until the receiver ends the transfer. */
static void send_data(int fd, const char *buf)
{
	long left = opt.writes;

	while (write(fd, buf, opt.write_size) >= 0)
		if (opt.writes && !--left)
			return;
	if (errno != ECONNRESET && errno != EPIPE)
		err(1, "write");
}

/*
 * Timers run in ticks of the kernel's clock: begin at the same place between
 * two of them each time, or one that was chosen.
 */
static void wait_for_start(void)
{
	struct timespec ts;
	uint64_t at;

	if (!opt.align_ns)
		return;
	at = (now() / opt.align_ns + 1) * opt.align_ns + opt.phase_ns;
	ts.tv_sec = at / NSEC_PER_SEC;
	ts.tv_nsec = at % NSEC_PER_SEC;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
		;
}

static void send_until_reset(struct shared *shared)
{
	socklen_t info_len = sizeof(shared->info);
	struct sockaddr_storage ss;
	socklen_t len = address_of(&ss);
	char *buf = calloc(1, BUF_SIZE);
	int one = 1, fd, opening = opt.open;
	ssize_t n = 0;

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
	wait_for_start();
	if (connect(fd, (struct sockaddr *)&ss, len))
		err(1, "cannot connect to %s port %d", opt.address, opt.port);
	if (opt.window) {
		for (; opening > 0 && n >= 0; opening -= n)
			n = write(fd, buf, 16384);
		sink_window(fd, shared, buf);
	}
	shared->bulk = true;
	if (opt.request)
		ask(fd, shared, buf);
	else
		send_data(fd, buf);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &shared->info, &info_len))
		err(1, "TCP_INFO");
}

/*
 * Make @window bytes the most that @fd can offer from now on: a buffer that
 * holds as much payload by the kernel's own rate of exchange, which the clamp
 * tells (window_clamp = win_from_space(rcvbuf)), and the clamp.  Returns what
 * the kernel made of it: it has minima of some 1,150 bytes.
 */
static unsigned int set_window(int fd, int window)
{
	socklen_t len = sizeof(int);
	int rcvbuf, clamp;
	double ratio;

	if (getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, &len) ||
	    getsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &clamp, &len))
		err(1, "cannot read the receive buffer");
	ratio = (double)clamp / rcvbuf;
	/* The kernel doubles what it is given. */
	rcvbuf = (window / ratio + 1) / 2;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &rcvbuf, len) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &window, len))
		err(1, "cannot set a window of %d bytes", window);
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, &len);
	getsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &clamp, &len);
	return rcvbuf * ratio > clamp ? rcvbuf * ratio : clamp;
}

static ssize_t read_some(int fd)
{
	static char buf[1 << 17];
	ssize_t n = read(fd, buf, sizeof(buf));

	if (n < 0)
		err(1, "read");
	if (n == 0 && !opt.writes)
		errx(1, "the sender ended early");
	return n;
}

/*
 * The receiver's part of sink_window(): say when a piece is read.  Returns the
 * bytes read that are no longer its.
 */
static ssize_t open_and_set_window(int fd, struct shared *shared)
{
	uint64_t got = 0;

	while (got < (uint64_t)opt.open)
		got += read_some(fd);
	shared->window = set_window(fd, opt.window);
	while (!shared->bulk) {
		if (shared->sent && got == opt.open + shared->sent &&
		    write(fd, "", 1) != 1)
			err(1, "write");
		got += read_some(fd);
	}
	return got - opt.open - shared->sent;
}

struct result {
	uint64_t bytes, ns;
	double bytes_per_s;
	struct tcp_info info;
	int window_clamp, rcvbuf;
	int peer_port;
};

/* @n bytes came; answer each whole request. */
static void answer(int fd, ssize_t n)
{
	static char buf[1 << 17];
	static int have;

	for (have += n; have >= opt.request; have -= opt.request)
		if (write(fd, buf, opt.request) != opt.request)
			err(1, "write");
}

static struct result receive(int listener, struct shared *shared)
{
	struct linger reset = { .l_onoff = 1 };
	struct line reads = {};
	struct sockaddr_storage peer = {};
	struct result res = {};
	uint64_t start, t, from = 0;
	socklen_t len;
	ssize_t n;
	int fd;

	len = sizeof(peer);
	fd = accept(listener, (struct sockaddr *)&peer, &len);
	if (fd < 0)
		err(1, "accept");
	/* At the same place in both families. */
	res.peer_port = ntohs(((struct sockaddr_in *)&peer)->sin_port);
	if (opt.rcvbuf && setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &opt.rcvbuf,
				     sizeof(opt.rcvbuf)))
		err(1, "SO_RCVBUF %d", opt.rcvbuf);
	if (opt.window) {
		n = open_and_set_window(fd, shared);
		if (opt.request)
			answer(fd, n);
	}

	start = now();
	for (;;) {
		n = read_some(fd);
		if (opt.request)
			answer(fd, n);
		t = now();
		if (n == 0) {
			if (res.bytes != (uint64_t)opt.writes * opt.write_size)
				errx(1, "the sender ended early");
			break;
		}
		if (opt.writes) {
			res.bytes += n;
			res.ns = t - start;
			res.bytes_per_s = (double)res.bytes * NSEC_PER_SEC /
					  res.ns;
			continue;
		}
		if (!from) {
			if (t - start < opt.warmup_ns)
				continue;
			from = t;
			shared->measuring = true;
			n = 0;
		}
		/*
		 * A window arrives as a burst.  Where in one the first and the
		 * last read fall would be an error of up to one window; the
		 * slope through all reads has next to none of it.
		 */
		res.bytes += n;
		res.ns = t - from;
		line_add(&reads, res.ns, res.bytes);
		if (res.ns >= opt.measure_ns) {
			res.bytes_per_s = line_slope(&reads) * NSEC_PER_SEC;
			break;
		}
	}
	len = sizeof(res.info);
	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &res.info, &len);
	len = sizeof(res.window_clamp);
	getsockopt(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &res.window_clamp, &len);
	getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &res.rcvbuf, &len);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	return res;
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
	       "\"latency_p50_ns\": %u, \"latency_p99_ns\": %u}\n",
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
	       latency(shared, 0.99));
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
"  --nodelay        TCP_NODELAY at the sender\n");
}

static void parse(int argc, char **argv)
{
	enum { FROM = 1, TO, ADDRESS, PORT, WARMUP, MEASURE, WRITE, WRITES,
	       REQUEST, RCVBUF, WINDOW, OPEN, ALIGN, PHASE, CC, NODELAY };
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
		enter_netns(opt.from);
		send_until_reset(shared);
		_exit(0);
	}
	res = receive(listener, shared);
	signal(SIGCHLD, SIG_DFL);
	while (waitpid(sender, NULL, 0) < 0 && errno == EINTR)
		;
	print_result(&res, shared, began);
	return 0;
}
