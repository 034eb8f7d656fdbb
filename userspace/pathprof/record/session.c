// SPDX-License-Identifier: GPL-2.0-only
/*
 * A recording session from load to unload, with its hooks attached all the time
 * or in short sampling bursts; the only file that includes the skeleton of the
 * BPF programs.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include "kernel/attach.h"
#include "kernel/hooks.h"
#include "kernel/load-error.h"
#include "kernel/stage-groups.h"
#include "pathprof.skel.h"
#include "record/burst.h"
#include "record/collect.h"
#include "record/config.h"
#include "record/duty-cycle.h"
#include "record/events.h"
#include "record/probe-dispatch.h"
#include "record/probe.h"
#include "record/session.h"

struct session {
	struct pathprof_bpf *skel;
	struct sums sums;
	struct attachments attached;
	struct refusals refused;
	struct drops drops;
	struct session_config config;
	uint64_t start_ns, stop_ns;
	char started[40];
	bool stopped;
	struct profile_probe probe;
	struct duty_cycle *cycle;	/* NULL: attached all the time */
	struct burst_plan plan;
	/*
	 * Held during a burst.  Its packets arrive after the time in which they
	 * were chosen, and a reader gets both or neither.
	 */
	pthread_mutex_t burst;
	uint64_t open_ns;		/* of all bursts */
	pthread_mutex_t lock;		/* of what follows */
	uint64_t nbursts;
	uint64_t bursts_ns, last_ns;	/* their cost; when the last one closed */
	struct events *events;		/* NULL: none are kept */
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Attached in sampling bursts only? */
static bool in_bursts(const struct session *s)
{
	return !s->config.sample;
}

static void set_config(struct session *s)
{
	struct pathprof_config *c = (void *)&s->skel->rodata->config;

	config__fill(c, (uint32_t *)s->skel->rodata->gaps,
		     in_bursts(s) ? 1 : s->config.sample, &s->config);
	memcpy((void *)s->skel->rodata->user_arguments,
	       s->config.users.arguments, sizeof(s->config.users.arguments));
	s->skel->rodata->events_on = s->config.events;
	s->skel->rodata->nat_on = s->config.nat;
	s->skel->rodata->drop_stacks_on = s->config.drop_stacks;
	s->skel->rodata->groups_on = s->config.groups;
	s->skel->rodata->state_on = s->config.state;
	s->skel->rodata->capture = s->config.capture;
	s->skel->rodata->pcap_length = s->config.npcap;
	if (s->config.npcap)
		memcpy((void *)s->skel->rodata->pcap_insns, s->config.pcap,
		       s->config.npcap * sizeof(*s->config.pcap));
	c->exits = !in_bursts(s) && attach__has(&s->attached, "tcp_rcv_established");
	c->transmits = !in_bursts(s) && attach__has(&s->attached, "__tcp_transmit_skb");
	c->backlog = !in_bursts(s) && attach__has(&s->attached, "tcp_add_backlog");
	c->synacks = !in_bursts(s) && attach__has(&s->attached, "tcp_make_synack");
	c->datagrams = stage_groups__want(s->config.stage_groups, s->config.udp,
					  "udp_send_skb") &&
		       attach__has(&s->attached, "udp_send_skb");
	c->messages = c->icmp && attach__has(&s->attached, "__ip_make_skb") &&
		      attach__has(&s->attached, "__ip6_make_skb");
}

static void set_enabled(struct session *s, bool on)
{
	__atomic_store_n(&s->skel->bss->enabled, on, __ATOMIC_SEQ_CST);
}

static int64_t still_followed(struct session *s)
{
	return __atomic_load_n(&s->skel->bss->tracked_count,
			       __ATOMIC_SEQ_CST);
}

static void run_program(const struct bpf_program *prog)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	bpf_prog_test_run_opts(bpf_program__fd(prog), &opts);
}

#define DRAIN_NS	1000000
#define DRAINS		3
#define HOOKS_A_PACKET	8	/* an estimate */
#define HOOKS_REFUSED	2	/* of one that a filter rejects, likewise */

static void pause_ns(uint64_t ns)
{
	struct timespec t = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&t, NULL);
}

/*
 * Packets by their cost: one that is not followed to its end counts for less,
 * unless a filter by owner follows it until it is decided.
 */
static double followed(const struct session *s)
{
	uint64_t counters[PATHPROF_COUNTER_MAX] = {};
	double refused;

	sums__counts(&s->sums, counters);
	refused = counters[CN_FILTERED] + counters[CN_NOT_TCP] +
		  counters[CN_UNPARSED] + counters[CN_FRAGMENTS];
	return counters[CN_SAMPLED] +
	       (s->config.cgroup || s->config.arm ? refused :
		refused * HOOKS_REFUSED / HOOKS_A_PACKET);
}

/*
 * Forget the packets that CPUs worked on when the hooks were detached last: a
 * call that began before they were attached again would take one of them for
 * its own, whose address may be another packet's by now.
 */
static void forget_calls(struct session *s)
{
	const struct bpf_map *map = s->skel->maps.cpu_works;
	size_t size = bpf_map__value_size(map) * libbpf_num_possible_cpus();
	void *none = calloc(1, size);
	uint32_t zero = 0;

	if (none)
		bpf_map__update_elem(map, &zero, sizeof(zero), none, size,
				     BPF_ANY);
	free(none);
}

/* Let packets be chosen, as long as this burst is to last; how many were. */
static double stay_open(struct session *s, double fixed_ns)
{
	double before = followed(s), packets = 0;
	uint64_t opened = now_ns(), elapsed = 0, more;

	set_enabled(s, true);
	while ((more = burst__next(&s->plan, fixed_ns, elapsed, packets))) {
		pause_ns(more);
		elapsed = now_ns() - opened;
		packets = followed(s) - before;
	}
	set_enabled(s, false);
	elapsed = now_ns() - opened;
	s->open_ns += elapsed;
	burst__learn(&s->plan, elapsed, packets);
	return packets;
}

/* What has not arrived is cut off. */
static void cut_off(struct session *s)
{
	if (still_followed(s) > 0)
		run_program(s->skel->progs.cut_off);
}

/*
 * One sampling burst: choose packets, wait until they have arrived, detach.
 * Its cost in ns.
 */
static uint64_t run_burst(void *arg)
{
	struct session *s = arg;
	uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), cost;
	double packets;
	int i;

	pthread_mutex_lock(&s->burst);
	attach__all(&s->attached);
	forget_calls(s);
	s->plan.packet_ns = HOOKS_A_PACKET *
			    (s->probe.event + s->probe.head + s->probe.tail);
	/* Detaching costs about as much again. */
	packets = stay_open(s, 2.0 * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu));
	for (i = 0; i < DRAINS && still_followed(s) > 0; i++)
		pause_ns(DRAIN_NS);
	/*
	 * Hooks are detached one by one.  A packet that is followed meanwhile
	 * would get the end that the remaining hooks infer.
	 */
	cut_off(s);
	attach__none(&s->attached);
	/* Those that a hook worked on a moment ago. */
	cut_off(s);
	cost = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu +
	       packets * s->plan.packet_ns;
	pthread_mutex_lock(&s->lock);
	s->nbursts++;
	s->bursts_ns += cost;
	s->last_ns = now_ns();
	pthread_mutex_unlock(&s->lock);
	pthread_mutex_unlock(&s->burst);
	return cost;
}

static uint64_t grown(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

/* The ring is there only where it is asked for; a power of two. */
static void size_events(struct session *s)
{
	uint32_t kb = s->config.events_kb ? s->config.events_kb : EVENTS_KB;
	uint32_t size = 4096;

	while (size >> 10 < kb)
		size <<= 1;
	if (s->config.events)
		bpf_map__set_max_entries(s->skel->maps.event_ring, size);
	else
		bpf_map__set_autocreate(s->skel->maps.event_ring, false);
}

/* The calibration's events in the ring do not count. */
static int begin_events(struct session *s, char *err, size_t len)
{
	int rc;

	if (!s->config.events)
		return 0;
	rc = events__start(&s->events, bpf_map__fd(s->skel->maps.event_ring),
			   s->config.events, err, len);
	s->skel->bss->event_packets = 0;
	s->skel->bss->events_lost = 0;
	return rc;
}

int session__write_events(struct session *s, const struct profile *p,
			  uint64_t *lost, char *err, size_t len)
{
	*lost = s->skel->bss->events_lost;
	return events__write(s->events, p, s->start_ns, *lost, err, len);
}

static int load(struct session *s, char *err, size_t len)
{
	int rc;

	attach__register();
	s->skel = pathprof_bpf__open();
	if (!s->skel)
		return load_error__explain(-errno, err, len);
	rc = attach__find(&s->attached, s->skel->obj, !in_bursts(s),
			  &s->config.users, &s->drops, err, len);
	if (rc)
		return rc;
	/* They would be attached, and never called. */
	if (!in_bursts(s) && attach__ftrace_off())
		attach__refuse(&s->attached, &s->refused,
			       "kernel.ftrace_enabled is 0");
	attach__leave_out(&s->attached, &s->refused);
	set_config(s);
	size_events(s);
	bpf_map__set_autocreate(s->skel->maps.groups, s->config.groups);
	bpf_map__set_autocreate(s->skel->maps.drop_stacks,
				s->config.drop_stacks);
	bpf_map__set_autocreate(s->skel->maps.path_states, s->config.state);
	attach__choose(&s->attached, &(struct attach_choice){
		.bursts = in_bursts(s),
		.fine = s->config.fine,
		.groups = s->config.stage_groups,
		.udp = s->config.udp,
		.nat = s->config.nat,
		.exits = s->skel->rodata->config.exits,
	});
	rc = attach__check(&s->attached, s->config.nat, err, len);
	if (rc)
		return rc;
	attach__loading(&s->attached);
	rc = pathprof_bpf__load(s->skel);
	attach__loading(NULL);
	if (rc)
		return load_error__explain(rc, err, len);
	s->sums = (struct sums){
		.path_values = s->skel->maps.path_values,
		.counts = s->skel->maps.counts,
		.stage_times = s->skel->maps.stage_times,
		.path_states = s->config.state ? s->skel->maps.path_states :
			       NULL,
		.groups = s->config.groups ? s->skel->maps.groups : NULL,
		.path_entries = s->skel->bss->path_entries,
		.tracked_pkts = s->skel->bss->tracked_pkts,
		.tracked_keys = s->skel->bss->tracked_keys,
		.socks = s->skel->bss->socks,
		.drops = &s->drops,
	};
	s->drops.stacks = s->config.drop_stacks ?
			  bpf_map__fd(s->skel->maps.drop_stacks) : -1;
	return 0;
}

/*
 * Once more, without the functions that could not be hooked: the programs
 * behave differently then, and their tracepoints are enough for an account.
 */
static int load_again(struct session *s, char *err, size_t len)
{
	attach__none(&s->attached);
	pathprof_bpf__destroy(s->skel);
	memset(&s->attached, 0, sizeof(s->attached));
	return load(s, err, len);
}

/*
 * The cost of reaching one hook: what a call takes now, less the time `before`
 * these hooks were attached.
 */
static uint64_t way_to(const struct session *s, const char *const *names,
		       uint64_t before, uint64_t (*call)(void))
{
	unsigned int n = attach__count(&s->attached, names);

	return n ? grown(before, call()) / n : 0;
}

/* Attach, and measure what that costs; how many hooks there are. */
static int attach_measured(struct session *s)
{
	static const char *const event[] = { DISPATCH_EVENTS, NULL };
	static const char *const entry[] = { DISPATCH_FUNCTION, NULL };
	uint64_t events = dispatch__events(), function = dispatch__function();
	const struct probe_costs *costs = &s->skel->bss->probe;
	int attached;

	run_program(s->skel->progs.calibrate);
	attached = attach__all(&s->attached);
	s->probe = (struct profile_probe){
		.head = costs->head, .tail = costs->tail,
		.claim = costs->claim, .clock = costs->clock,
		.event = way_to(s, event, events, dispatch__events),
		.function = way_to(s, entry, function, dispatch__function),
	};
	return attached;
}

static int begin(struct session *s, char *err, size_t len)
{
	time_t now = time(NULL);
	struct tm tm;
	int rc, attached = attach_measured(s);

	if (attach__refuse(&s->attached, &s->refused, NULL)) {
		rc = load_again(s, err, len);
		if (rc)
			return rc;
		attached = attach_measured(s);
	}
	if (!attached) {
		snprintf(err, len, "no hook could be attached on this kernel; "
			 "`pathprof list` shows why");
		return -EOPNOTSUPP;
	}
	rc = attach__users(&s->attached, HOOK_ATTACHED, err, len);
	if (rc)
		return rc;
	attach__report(&s->attached, &s->refused);
	rc = begin_events(s, err, len);
	if (rc)
		return rc;
	gmtime_r(&now, &tm);
	strftime(s->started, sizeof(s->started), "%Y-%m-%dT%H:%M:%SZ", &tm);
	s->start_ns = now_ns();
	if (!in_bursts(s)) {
		set_enabled(s, true);
		return 0;
	}
	attach__none(&s->attached);
	rc = duty_cycle__start(&s->cycle, s->config.budget, run_burst, s);
	if (rc)
		snprintf(err, len, "cannot start a thread: %s", strerror(-rc));
	return rc;
}

int session__start(struct session **out, const struct session_config *config,
		   char *err, size_t len)
{
	struct session *s = calloc(1, sizeof(*s));
	int rc;

	if (!s) {
		snprintf(err, len, "out of memory");
		return -ENOMEM;
	}
	load_error__listen();
	pthread_mutex_init(&s->burst, NULL);
	pthread_mutex_init(&s->lock, NULL);
	s->config = *config;
	rc = user_stages__find(&s->config.users, err, len);
	if (!rc)
		rc = load(s, err, len);
	/* Some kernels load programs for tracepoints, but not for functions. */
	if (rc && s->skel &&
	    attach__refuse(&s->attached, &s->refused, "refused by the kernel"))
		rc = load_again(s, err, len);
	if (!rc)
		rc = begin(s, err, len);
	if (rc) {
		s->stopped = true;
		session__free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void session__stop(struct session *s)
{
	int64_t *active = (int64_t *)&s->skel->bss->tracked_count;
	size_t i;

	if (s->stopped)
		return;
	s->stopped = true;
	duty_cycle__stop(s->cycle);
	/* No new packets; those under way get a moment to arrive. */
	set_enabled(s, false);
	s->stop_ns = now_ns();
	for (i = 0; i < 5 && still_followed(s); i++)
		pause_ns(10000000); /* poll: the table empties itself */
	/*
	 * Nobody may write from here on: what is read is final, although the
	 * hooks are still there.  Detaching a function takes the kernel a
	 * tenth of a second (an RCU-tasks grace period under one lock), one
	 * by one whatever we do, so it is left to session__free().
	 * membarrier() waits for the programs that run right now.
	 */
	__atomic_store_n(active, TRACKED_FROZEN, __ATOMIC_SEQ_CST);
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		pause_ns(10000000); /* the kernel lacks it */
	events__stop(s->events, &s->sums);
}

void session__free(struct session *s)
{
	if (!s)
		return;
	if (s->skel && !s->stopped)
		session__stop(s);
	attach__none(&s->attached);
	events__free(s->events);
	pathprof_bpf__destroy(s->skel);
	free(s);
}

static void describe_system(struct session *s, struct profile *p)
{
	struct utsname u;

	uname(&u);
	snprintf(p->release, sizeof(p->release), "%s", u.release);
	snprintf(p->machine, sizeof(p->machine), "%.31s", u.machine);
	snprintf(p->tool_version, sizeof(p->tool_version), "%s", VERSION);
	memcpy(p->hooks, s->attached.hooks, sizeof(p->hooks));
	drops__fill(&s->drops, p);
	p->nhooks = s->attached.n;
	user_stages__fill(&s->config.users, p);
	hooks__stages(p);
}

static int read_sums(struct session *s, struct profile *p)
{
	int rc;

	attach__read_misses(&s->attached);
	drops__resolve(&s->drops, s->sums.path_entries);
	describe_system(s, p);
	p->probe = s->probe;
	p->probe_ns = s->probe.head + s->probe.tail;
	p->probe_known = p->probe_ns;
	p->sample = in_bursts(s) ? 1 : s->config.sample;
	p->budget_ppm = in_bursts(s) ? s->config.budget * 10000 + 0.5 : 0;
	p->port = s->config.port;
	if (s->config.addr)
		snprintf(p->addr, sizeof(p->addr), "%.46s/%u", s->config.addr,
			 s->config.prefix);
	snprintf(p->filter, sizeof(p->filter), "%s", s->config.filter);
	p->udp = s->config.udp;
	p->icmp = stage_groups__icmp(s->config.stage_groups);
	p->fine = s->config.fine;
	snprintf(p->started, sizeof(p->started), "%s", s->started);
	p->duration_ns = (s->stopped ? s->stop_ns : now_ns()) - s->start_ns;
	p->open_ns = in_bursts(s) ? s->open_ns : p->duration_ns;
	sums__counts(&s->sums, p->counters);
	if (s->config.stage_times)
		sums__stages(&s->sums, p);
	p->counters[CN_BURSTS] = s->nbursts;
	rc = sums__paths(&s->sums, p);
	if (!rc)
		rc = sums__groups(&s->sums, p);
	if (!rc && s->stopped)
		rc = sums__tracked(&s->sums, p);
	else if (!rc)
		sums__followed(&s->sums, p);
	probe__fill(p, s->config.events);
	return rc;
}

int session__read(struct session *s, struct profile *p)
{
	int rc;

	pthread_mutex_lock(&s->burst);
	rc = read_sums(s, p);
	pthread_mutex_unlock(&s->burst);
	return rc;
}

void session__pulse(struct session *s, struct session_pulse *pulse)
{
	pthread_mutex_lock(&s->lock);
	*pulse = (struct session_pulse){
		.in_bursts = in_bursts(s),
		.bursts = s->nbursts,
		.age_ns = s->last_ns ? now_ns() - s->last_ns : 0,
		.cost_ns = s->bursts_ns,
		.budget = s->config.budget,
	};
	pthread_mutex_unlock(&s->lock);
}

bool session__set_budget(struct session *s, double percent)
{
	if (!s->cycle)
		return false;
	s->config.budget = percent;
	duty_cycle__set(s->cycle, percent);
	return true;
}

int session__probe(struct profile *p, char *err, size_t len)
{
	struct session *s = calloc(1, sizeof(*s));
	int rc;

	if (!s) {
		snprintf(err, len, "out of memory");
		return -ENOMEM;
	}
	load_error__listen();
	s->skel = pathprof_bpf__open();
	if (!s->skel)
		rc = load_error__explain(-errno, err, len);
	else
		rc = attach__find(&s->attached, s->skel->obj, true,
				  &s->config.users, &s->drops, err, len);
	if (!rc)
		describe_system(s, p);
	s->stopped = true;
	session__free(s);
	return rc;
}
