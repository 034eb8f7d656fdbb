// SPDX-License-Identifier: GPL-2.0
/*
 * pattern-load: keeps many TCP connections busy between two network
 * namespaces and checks every byte that arrives.
 *
 * What a byte must be follows from its connection and its position, so a lost,
 * repeated, moved or changed one is found.  Sizes of transfers, writes, reads
 * and buffers, pauses of the reader and socket options come from a seed.
 * Connections that end are replaced until SIGTERM; then the rest is finished,
 * as far as there is time.
 * One thread holds both ends.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <linux/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "pattern-load.h"

/*
 * A flow is stuck if it moved nothing for STUCK_NS while others moved.  That
 * is looked at in steps of STEP_NS.  A step that took longer counts no more
 * than STEP_MAX_NS: this program did not run, and a busy host is not a stuck
 * flow.
 *
 * Before GIVE_UP_NS a flow may wait for the kernel's own timers, which nothing
 * here may stop.  What may take them seconds:
 *
 * The network of these tests loses packets, and the retransmission timer
 * doubles each time; the first itself is seconds where a busy host made round
 * trips of seconds.
 *
 * With nothing in flight and a window below one segment it sends when the timer
 * of the zero-window probe expires, and every ACK that comes sets that timer
 * anew (tcp_ack_probe()): while the other way of the connection is busy, and
 * for one timer's time after, nothing goes out.
 *
 * A timer that is overdue for STUCK_NS is none.  What came after all may be
 * acknowledged and not be read yet: the reader gets SLACK_NS from the last ACK
 * on.
 */
#define STUCK_NS	(5 * SEC)
#define STEP_NS		(100 * MSEC)
#define STEP_MAX_NS	(200 * MSEC)
#define SLACK_NS	(1 * SEC)
#define GIVE_UP_NS	(60 * SEC)

struct options opt = {
	.flows = 64,
	.port = 6000,
	.seed = 1,
};

static volatile sig_atomic_t finish;

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * SEC + ts.tv_nsec;
}

void enter_netns(const char *name)
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

/* --- Progress ------------------------------------------------------------ */

/* Does the kernel, and no policy, let this end wait?  @passed: as of judge(). */
static bool excused(struct flow *f, int end, uint64_t passed)
{
	struct way *w = &f->way[end];
	struct tcp_info info = {};
	socklen_t len = sizeof(info);
	/* Before the ACKs: reading the table takes long, and one may come. */
	struct timer timer = timer_of(f, end);

	if (getsockopt(f->fd[end], IPPROTO_TCP, TCP_INFO, &info, &len))
		return false;
	if (info.tcpi_last_ack_recv * MSEC < SLACK_NS)
		return true;
	w->overdue = timer.overdue ? w->overdue + passed : 0;
	if (w->overdue > STUCK_NS)
		return false;
	if (timer.retransmission)
		return true;
	if (!timer.probe || info.tcpi_snd_wnd >= info.tcpi_snd_mss)
		return false;
	total.probe_waits += !w->probe_wait;
	w->probe_wait = true;
	return true;
}

/*
 * Did the kernel shut the window for good?  Without window scaling it offers
 * whole segments of what rcv_ssthresh allows, and where pruning made that less
 * than one, none, to an empty queue, for ever (__tcp_select_window()).
 */
static bool shut_for_good(const struct flow *f, int end)
{
	struct tcp_info from = {}, to = {};
	socklen_t from_len = sizeof(from), to_len = sizeof(to);
	int unread;

	return !getsockopt(f->fd[end], IPPROTO_TCP, TCP_INFO, &from,
			   &from_len) &&
	       !getsockopt(f->fd[!end], IPPROTO_TCP, TCP_INFO, &to, &to_len) &&
	       !ioctl(f->fd[!end], FIONREAD, &unread) && !unread &&
	       !from.tcpi_snd_wnd && !to.tcpi_rcv_wscale &&
	       to.tcpi_rcv_ssthresh < to.tcpi_rcv_mss;
}

static void judge_way(struct flow *f, int end, uint64_t t, uint64_t passed)
{
	struct way *w = &f->way[end];

	if (way_done(w) || t < w->paused_until)
		return;
	w->idle += passed;
	if (w->idle > total.longest_idle)
		total.longest_idle = w->idle;
	if (w->idle <= STUCK_NS ||
	    (w->idle <= GIVE_UP_NS && excused(f, end, passed)))
		return;
	if (!shut_for_good(f, end))
		fail(f, "stuck for %llu ms",
		     (unsigned long long)(w->idle / MSEC));
	total.shut_windows++;
	close_flow(f);
}

/* @passed: ns of this step, cut to STEP_MAX_NS. */
static void judge(uint64_t t, uint64_t passed)
{
	static uint64_t silence;
	bool moved = false, open = false;
	struct flow *f;

	for (f = flows; f < flows + opt.flows; f++) {
		moved |= f->moved;
		open |= f->fd[CLIENT] >= 0;
		f->moved = false;
	}
	silence = moved || !open ? 0 : silence + passed;
	if (silence > GIVE_UP_NS)
		fail(flows, "no connection at all moves (this is one)");
	if (!moved)
		return;
	for (f = flows; f < flows + opt.flows; f++) {
		if (f->fd[SERVER] >= 0) {
			judge_way(f, CLIENT, t, passed);
			if (f->fd[SERVER] >= 0)
				judge_way(f, SERVER, t, passed);
		} else if (f->fd[CLIENT] >= 0) {
			f->idle += passed;
			if (f->idle <= GIVE_UP_NS)
				continue;
			if (!opt.faults)
				fail(f, "does not get connected");
			/* A client that says nothing never hears that it is not. */
			close_flow(f);
			total.retried++;
		}
	}
}

/* --- The loop ------------------------------------------------------------ */

static short events_of(const struct flow *f, int end, uint64_t t)
{
	const struct way *in = &f->way[!end], *out = &f->way[end];
	short events = 0;

	if (f->fd[SERVER] < 0)
		return 0;	/* accept() is what we wait for */
	if (!in->ended && t >= in->paused_until)
		events |= POLLIN;
	if (!out->shut)
		events |= POLLOUT;
	return events;
}

static void serve_end(struct flow *f, int end, short revents, uint64_t t)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (revents & POLLERR) {
		getsockopt(f->fd[end], SOL_SOCKET, SO_ERROR, &error, &len);
		if (error)
			end_failed(f, end, "socket", error);
		else
			zerocopy_completions(f->fd[end]);
	}
	if (f->fd[SERVER] < 0)
		return;
	if (revents & (POLLIN | POLLHUP) && t >= f->way[!end].paused_until)
		read_some(f, end, t);
	if (revents & POLLOUT && f->fd[end] >= 0)
		send_some(f, end);
}

static void on_signal(int sig)
{
	(void)sig;
	finish = true;
}

/* One turn: wait, serve every socket, replace what ended. True if any is open. */
static bool turn(uint64_t t)
{
	static struct pollfd polls[MAX_ADDRESSES + 2 * MAX_FLOWS];
	struct pollfd *p = polls + opt.addresses;
	bool open = false;
	int i, end;

	for (i = 0; i < opt.addresses; i++)
		polls[i] = (struct pollfd) { listener[i], POLLIN, 0 };
	for (i = 0; i < opt.flows; i++) {
		struct flow *f = &flows[i];

		if (f->fd[CLIENT] < 0 && !finish)
			open_flow(f);
		for (end = 0; end < 2; end++)
			p[2 * i + end] = (struct pollfd) {
				f->fd[end], events_of(f, end, t), 0 };
	}
	if (poll(polls, opt.addresses + 2 * opt.flows, 10) < 0 &&
	    errno != EINTR)
		err(1, "poll");
	for (i = 0; i < opt.flows; i++) {
		struct flow *f = &flows[i];

		for (end = 0; end < 2; end++)
			if (f->fd[end] >= 0)
				serve_end(f, end, p[2 * i + end].revents, t);
		if (f->fd[SERVER] >= 0 && way_done(&f->way[CLIENT]) &&
		    way_done(&f->way[SERVER])) {
			f->moved = true;
			close_flow(f);
		}
		open |= f->fd[CLIENT] >= 0;
	}
	for (i = 0; i < opt.addresses; i++)
		if (polls[i].revents)
			accept_one(i);
	return open;
}

static void run(void)
{
	uint64_t start = now(), last = start, t = start, finishing = 0;
	bool all_moved = false;

	while (turn(t) || !finish) {
		t = now();
		if (finish && !finishing)
			finishing = t;
		if (finishing && opt.grace && t - finishing > opt.grace * SEC)
			break;
		if (t - last >= STEP_NS) {
			judge(t, t - last < STEP_MAX_NS ? t - last :
				 STEP_MAX_NS);
			last = t;
		}
		if (opt.seconds && t - start > opt.seconds * SEC)
			finish = true;
		if (!all_moved && total.connections >= (uint64_t)opt.flows) {
			all_moved = true;
			printf("all %d flows have begun\n", opt.flows);
			fflush(stdout);
		}
	}
}

/* --- Command line -------------------------------------------------------- */

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

static enum plant plant_of(const char *word)
{
	static const char *const words[] = {
		[CORRUPT] = "corrupt", [LOSE] = "lose", [STALL] = "stall" };
	enum plant i;

	for (i = CORRUPT; i <= STALL; i++)
		if (!strcmp(word, words[i]))
			return i;
	errx(EXIT_USAGE, "--plant %s: wants corrupt, lose or stall", word);
}

static void usage(FILE *out)
{
	fprintf(out,
"usage: pattern-load [OPTIONS]\n"
"Checked TCP traffic between two network namespaces, until SIGTERM.\n"
"Exit status: 0 every byte right; 1 one was not, or a flow was stuck; 2 usage.\n"
"  --from NS        namespace of the clients (default: current)\n"
"  --to NS          namespace of the servers (default: current)\n"
"  --address ADDR   of the servers, IPv4 or IPv6 (default 127.0.0.1);\n"
"                   given twice, connections are spread over both\n"
"  --port N         TCP port of the servers (default 6000)\n"
"  --flows N        connections at any time, 1..1024 (default 64)\n"
"  --seed N         of all sizes and choices (default 1)\n"
"  --seconds N      end after that time (default: at SIGTERM)\n"
"  --grace N        give up, N seconds after the end, what is still under way;\n"
"                   what came until then was checked (default: finish it)\n"
"  --faults         the kernel's allocations fail: try again on ENOMEM and\n"
"                   ENOBUFS and where a connection is not accepted, miss no\n"
"                   FIN, and count connections reset when both ends had sent\n"
"                   theirs\n"
"  --plant FAULT    corrupt, lose or stall: an own fault in every connection of\n"
"                   more than 50000 bytes, to see it found\n");
}

static void parse(int argc, char **argv)
{
	enum { FROM = 1, TO, ADDRESS, PORT, FLOWS, SEED, SECONDS, GRACE,
	       FAULTS, PLANT };
	static const struct option options[] = {
		{ "from", required_argument, NULL, FROM },
		{ "to", required_argument, NULL, TO },
		{ "address", required_argument, NULL, ADDRESS },
		{ "port", required_argument, NULL, PORT },
		{ "flows", required_argument, NULL, FLOWS },
		{ "seed", required_argument, NULL, SEED },
		{ "seconds", required_argument, NULL, SECONDS },
		{ "grace", required_argument, NULL, GRACE },
		{ "faults", no_argument, NULL, FAULTS },
		{ "plant", required_argument, NULL, PLANT },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	int c, i = 0;

	while ((c = getopt_long(argc, argv, "h", options, &i)) != -1) {
		const char *name = options[i].name;

		switch (c) {
		case FROM: opt.from = optarg; break;
		case TO: opt.to = optarg; break;
		case ADDRESS:
			if (opt.addresses == MAX_ADDRESSES)
				errx(EXIT_USAGE, "more than %d addresses",
				     MAX_ADDRESSES);
			opt.address[opt.addresses++] = optarg;
			break;
		case PORT: opt.port = number(name, optarg, 1, 65535); break;
		case FLOWS:
			opt.flows = number(name, optarg, 1, MAX_FLOWS);
			break;
		case SEED:
			opt.seed = number(name, optarg, 0, UINT_MAX);
			break;
		case SECONDS:
			opt.seconds = number(name, optarg, 1, 1000000);
			break;
		case GRACE:
			opt.grace = number(name, optarg, 1, 1000000);
			break;
		case FAULTS: opt.faults = true; break;
		case PLANT: opt.plant = plant_of(optarg); break;
		case 'h': usage(stdout); exit(0);
		default: usage(stderr); exit(EXIT_USAGE);
		}
	}
	if (optind != argc)
		errx(EXIT_USAGE, "unexpected argument %s", argv[optind]);
	if (!opt.from != !opt.to)
		errx(EXIT_USAGE, "--from and --to go together");
	if (!opt.addresses)
		opt.address[opt.addresses++] = "127.0.0.1";
}

int main(int argc, char **argv)
{
	int i;

	parse(argc, argv);
	make_pattern();
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	enter_netns(opt.to);
	for (i = 0; i < opt.addresses; i++)
		listener[i] = listen_socket(i);
	enter_netns(opt.from);
	for (i = 0; i < MAX_FLOWS; i++)
		flows[i].fd[CLIENT] = flows[i].fd[SERVER] = -1;
	run();
	printf("{\"connections\": %llu, \"bytes\": %llu, \"zerocopy_sends\": "
	       "%llu, \"retried\": %llu, \"probe_waits\": %llu, "
	       "\"resets\": %llu, \"shut_windows\": %llu, "
	       "\"longest_idle_ms\": %llu}\n",
	       (unsigned long long)total.connections,
	       (unsigned long long)total.bytes,
	       (unsigned long long)total.zerocopy,
	       (unsigned long long)total.retried,
	       (unsigned long long)total.probe_waits,
	       (unsigned long long)total.resets,
	       (unsigned long long)total.shut_windows,
	       (unsigned long long)(total.longest_idle / MSEC));
	if (fflush(stdout) || ferror(stdout))
		err(1, "standard output");
	return 0;
}
