// SPDX-License-Identifier: GPL-2.0-only
/*
 * Command pattern: keeps many TCP connections busy between two network
 * namespaces and checks every byte that arrives.
 *
 * The value of a byte follows from its connection and its position, so that a
 * lost, repeated, moved or changed byte is found.  Sizes of transfers, writes,
 * reads and buffers, pauses of the reader and socket options come from a seed.
 * Connections that end are replaced until SIGTERM; then those under way are
 * finished, as far as there is time.  One thread holds both ends.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <limits.h>
#include <linux/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "pattern.h"

/*
 * A flow is stuck if it moved nothing for STUCK_NS while others moved.  This is
 * checked in steps of STEP_NS.  A step that took longer counts as STEP_MAX_NS:
 * this program did not run, and a busy host is not a stuck flow.
 *
 * Until GIVE_UP_NS a flow may wait for the kernel's own timers, which can take
 * seconds for two reasons:
 *
 * - The network of these tests loses packets, and the retransmission timer
 *   doubles each time.  The first timeout is seconds long where a busy host
 *   made round trips of seconds.
 * - With nothing unacknowledged and a window below one segment, the sender waits
 *   for the timer of the zero-window probe.  Every ACK that arrives restarts
 *   that timer (tcp_ack_probe()).  While the other direction of the connection
 *   is busy, and for one timeout after that, nothing is sent.
 *
 * A timer that is overdue by STUCK_NS does not count.  Data that arrived in the
 * end may be acknowledged and not read yet: the reader has SLACK_NS from the
 * last ACK on.
 */
#define STUCK_NS	(5 * SEC)
#define STEP_NS		(100 * MSEC)
#define STEP_MAX_NS	(200 * MSEC)
#define SLACK_NS	(1 * SEC)
#define GIVE_UP_NS	(60 * SEC)

struct pattern pattern = {
	.flows = 64,
	.port = 6000,
	.seed = 1,
};

static volatile sig_atomic_t finish;

/* --- Progress ------------------------------------------------------------ */

/* Do the kernel's own timers let this end wait?  @passed: as in judge(). */
static bool excused(struct flow *f, int end, uint64_t passed)
{
	struct way *w = &f->way[end];
	struct tcp_info info;
	/* Read before TCP_INFO: reading the table is slow; an ACK may arrive. */
	struct timer timer = timer_of(f, end);

	if (!read_tcp_info(f->fd[end], &info))
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
 * Did the kernel close the window permanently, with nothing unread?  There are two
 * ways.  Without window scaling it advertises full-sized segments only, within
 * rcv_ssthresh.  If pruning made that less than one segment, it advertises zero
 * (__tcp_select_window()).  The other begins when it has no room for a segment: it
 * sets the window to zero, and drops data until it advertises another
 * (tcp_select_window(), tcp_data_queue()).  If packets out of order fill the
 * buffer, it never does.
 */
static bool shut_for_good(const struct flow *f, int end)
{
	struct tcp_info from, to;
	struct memory m;
	int unread;

	if (!read_tcp_info(f->fd[end], &from) || !read_tcp_info(f->fd[!end], &to) ||
	    ioctl(f->fd[!end], FIONREAD, &unread) || unread || from.tcpi_snd_wnd)
		return false;
	return (!to.tcpi_rcv_wscale && to.tcpi_rcv_ssthresh < to.tcpi_rcv_mss) ||
	       (read_memory(f->fd[!end], &m) && m.used > m.limit);
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
		fail(f, "stuck for %llu ms", w->idle / MSEC);
	total.shut_windows++;
	close_flow(f);
}

/* @passed: ns of this step, at most STEP_MAX_NS. */
static void judge(uint64_t t, uint64_t passed)
{
	static uint64_t silence;
	bool moved = false, open = false;
	struct flow *f;

	for (f = flows; f < flows + pattern.flows; f++) {
		moved |= f->moved;
		open |= f->fd[CLIENT] >= 0;
		f->moved = false;
	}
	silence = moved || !open ? 0 : silence + passed;
	if (silence > GIVE_UP_NS)
		fail(flows, "no connection at all moves (this is one)");
	if (!moved)
		return;
	for (f = flows; f < flows + pattern.flows; f++) {
		if (f->fd[SERVER] >= 0) {
			judge_way(f, CLIENT, t, passed);
			if (f->fd[SERVER] >= 0)
				judge_way(f, SERVER, t, passed);
		} else if (f->fd[CLIENT] >= 0) {
			f->idle += passed;
			if (f->idle <= GIVE_UP_NS)
				continue;
			if (!pattern.faults)
				fail(f, "does not get connected");
			/* A client that sends nothing is never told so. */
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
			reap_zerocopy(f->fd[end], NULL, NULL);
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
	struct pollfd *p = polls + pattern.addresses;
	bool open = false;
	int i, end;

	for (i = 0; i < pattern.addresses; i++)
		polls[i] = (struct pollfd){ listener[i], POLLIN, 0 };
	for (i = 0; i < pattern.flows; i++) {
		struct flow *f = &flows[i];

		if (f->fd[CLIENT] < 0 && !finish)
			open_flow(f);
		for (end = 0; end < 2; end++)
			p[2 * i + end] = (struct pollfd){
				f->fd[end], events_of(f, end, t), 0 };
	}
	if (poll(polls, pattern.addresses + 2 * pattern.flows, 10) < 0 &&
	    errno != EINTR)
		err(1, "poll");
	for (i = 0; i < pattern.flows; i++) {
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
	for (i = 0; i < pattern.addresses; i++)
		if (polls[i].revents)
			accept_one(i);
	return open;
}

static void serve(void)
{
	uint64_t start = now(), last = start, t = start, finishing = 0;
	bool all_moved = false;

	while (turn(t) || !finish) {
		t = now();
		if (finish && !finishing)
			finishing = t;
		if (finishing && pattern.grace && t - finishing > pattern.grace * SEC)
			break;
		if (t - last >= STEP_NS) {
			judge(t, t - last < STEP_MAX_NS ? t - last :
				 STEP_MAX_NS);
			last = t;
		}
		if (pattern.seconds && t - start > pattern.seconds * SEC)
			finish = true;
		if (!all_moved && total.connections >= (uint64_t)pattern.flows) {
			all_moved = true;
			printf("all %ld flows have begun\n", pattern.flows);
			fflush(stdout);
		}
	}
}

/* --- Command line -------------------------------------------------------- */

static void take_fault(const char *word)
{
	static const char *const words[] = {
		[CORRUPT] = "corrupt", [LOSE] = "lose", [STALL] = "stall" };
	enum fault i;

	for (i = CORRUPT; i <= STALL; i++)
		if (!strcmp(word, words[i]))
			pattern.inject = i;
	if (!pattern.inject)
		errx(EXIT_USAGE, "--inject %s: wants corrupt, lose or stall",
		     word);
}

static void take_address(const char *word)
{
	if (pattern.addresses == MAX_ADDRESSES)
		errx(EXIT_USAGE, "more than %d addresses", MAX_ADDRESSES);
	pattern.address[pattern.addresses++] = word;
}

static int run(const void *load)
{
	int i;

	(void)load;
	if (!pattern.addresses)
		take_address("127.0.0.1");
	make_pattern();
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	enter_netns(pattern.to);
	for (i = 0; i < pattern.addresses; i++)
		listener[i] = bound_socket(pattern.address[i], pattern.port,
					   SOCK_STREAM | SOCK_NONBLOCK, 0,
					   MAX_FLOWS);
	enter_netns(pattern.from);
	for (i = 0; i < MAX_FLOWS; i++)
		flows[i].fd[CLIENT] = flows[i].fd[SERVER] = -1;
	serve();
	printf("{\"connections\": %llu, \"bytes\": %llu, \"zerocopy_sends\": "
	       "%llu, \"retried\": %llu, \"probe_waits\": %llu, "
	       "\"resets\": %llu, \"shut_windows\": %llu, "
	       "\"longest_idle_ms\": %llu}\n",
	       total.connections, total.bytes, total.zerocopy, total.retried,
	       total.probe_waits, total.resets, total.shut_windows,
	       total.longest_idle / MSEC);
	return finish_output();
}

static const struct option_spec options[] = {
	{ "from", "NS", "network namespace of the clients (current)", .word = &pattern.from },
	{ "to", "NS", "network namespace of the servers (current)", .word = &pattern.to },
	{ "address", "ADDR", "address of the servers, IPv4 or IPv6 (127.0.0.1); if given twice, "
	  "connections are spread over both", .take = take_address },
	{ "port", "N", "TCP port of the servers", NUMBER(pattern.port, 1, 65535) },
	{ "flows", "N", "number of simultaneous connections", NUMBER(pattern.flows, 1, MAX_FLOWS) },
	{ "seed", "N", "seed of all sizes and choices", NUMBER(pattern.seed, 0, UINT_MAX) },
	{ "seconds", "N", "end after N seconds", NUMBER(pattern.seconds, 1, 1000000) },
	{ "grace", "N", "at the end, wait N seconds for open connections; their data is "
	  "checked up to then", NUMBER(pattern.grace, 1, 1000000) },
	{ "faults", NULL, "the kernel's allocations fail: retry on ENOMEM and ENOBUFS and "
	  "where a connection is not accepted, allow a missing FIN, and count "
	  "connections reset after both ends sent a FIN", .flag = &pattern.faults },
	{ "inject", "FAULT", "corrupt, lose or stall: inject this fault into every connection of "
	  "more than 50000 bytes; pattern must detect it", .take = take_fault },
	{}
};

const struct command pattern_command = {
	"pattern", "Many connections, every byte checked, until SIGTERM.  The exit status "
	"is 1 if a byte was wrong or a connection was stuck.", options, run, NULL,
};
