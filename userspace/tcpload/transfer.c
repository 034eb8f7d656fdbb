// SPDX-License-Identifier: GPL-2.0-only
/*
 * One transfer between two network namespaces: starts both ends in one
 * program, so that a cell of an experiment does not wait for servers, and
 * prints what was measured as one JSON object.
 */
#define _GNU_SOURCE
#include "transfer.h"

#include <err.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct transfer transfer = {
	.address = "127.0.0.1",
	.warmup_ns = NSEC_PER_SEC,
	.measure_ns = 2 * NSEC_PER_SEC,
	.port = 5201,
	.write_size = 65536,
	.pause_every = 1,
	.ready_fd = -1,
	.go_fd = -1,
	.sender_cpu = -1,
	.receiver_cpu = -1,
};

static void pin(long cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		err(1, "cannot run on CPU %ld", cpu);
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The quantile of the latencies, ns; 0 without requests. */
static uint32_t latency(const struct shared *shared, double share)
{
	if (!shared->answered)
		return 0;
	return shared->took_ns[(unsigned int)(share * (shared->answered - 1))];
}

/*
 * CPU time of one end, including start and end of its process; ns.  The
 * receiver is this process, the sender its child.
 */
static unsigned long long cpu_time(int who)
{
	struct rusage usage;

	getrusage(who, &usage);
	return (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec +
		(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000ULL) *
	       1000;
}

static int print_result(const struct result *res, struct shared *shared,
			uint64_t began)
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
	       "\"cpu_receiver_ns\": %llu, \"wall_ns\": %llu, \"begun_ns\": %llu, "
	       "\"snd_mss\": %u, \"min_rtt_us\": %u, \"snd_cwnd\": %u, "
	       "\"retransmits\": %u, \"received\": %llu, "
	       "\"retransmitted\": %llu, \"sent_segments\": %u, "
	       "\"rtt_us\": %u, \"sender_port\": %d, \"answered\": %u, "
	       "\"latency_p50_ns\": %u, \"latency_p99_ns\": %u, "
	       "\"zerocopy_sent\": %u, \"zerocopy_copied\": %u, "
	       "\"zerocopy_received\": %llu, \"wrong_bytes\": %llu}\n",
	       res->bytes, res->ns, res->bytes_per_s,
	       res->info.tcpi_rcv_ssthresh, res->window_clamp, res->rcvbuf,
	       res->info.tcpi_rcv_mss, res->info.tcpi_data_segs_in,
	       sender_ns + receiver_ns, sender_ns, receiver_ns,
	       (unsigned long long)(now() - began),
	       (unsigned long long)shared->begun_ns, sender->tcpi_snd_mss,
	       sender->tcpi_min_rtt, sender->tcpi_snd_cwnd,
	       sender->tcpi_total_retrans,
	       (unsigned long long)res->info.tcpi_bytes_received,
	       (unsigned long long)sender->tcpi_bytes_retrans,
	       sender->tcpi_data_segs_out, sender->tcpi_rtt, res->peer_port,
	       shared->answered, latency(shared, 0.5),
	       latency(shared, 0.99), shared->unpinned, shared->copied,
	       res->mapped, res->wrong);
	return finish_output();
}

/* A sender that could not start must not leave the receiver waiting. */
static void on_sender_end(int sig)
{
	int status;

	(void)sig;
	if (waitpid(-1, &status, WNOHANG) > 0 && status)
		_exit(1);
}

int transfer_run(const void *load)
{
	const struct transfer *t = &transfer;
	struct shared *shared;
	struct result res;
	uint64_t began = now();
	int listener;
	pid_t sender;

	if (t->window && (t->rcvbuf || t->writes))
		errx(EXIT_USAGE, "--window excludes --rcvbuf and --writes");
	if (t->verify && (t->window || t->zerocopy_rx))
		errx(EXIT_USAGE, "--verify excludes --window and --zerocopy-rx");
	transfer.open &= ~(OPEN_WRITE - 1L);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		err(1, "mmap");
	enter_netns(t->to);
	listener = bound_socket(t->address, t->port, SOCK_STREAM, 0, 1);
	signal(SIGCHLD, on_sender_end);

	sender = fork();
	if (sender < 0)
		err(1, "fork");
	if (!sender) {
		signal(SIGCHLD, SIG_DFL);
		signal(SIGPIPE, SIG_IGN);
		close(listener);
		pin(t->sender_cpu);
		enter_netns(t->from);
		sender_run(t, load, shared);
		_exit(0);
	}
	pin(t->receiver_cpu);
	res = receiver_run(t, load, listener, shared);
	signal(SIGCHLD, SIG_DFL);
	while (waitpid(sender, NULL, 0) < 0 && errno == EINTR)
		;
	return print_result(&res, shared, began);
}
