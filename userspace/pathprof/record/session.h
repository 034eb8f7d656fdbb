/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A recording session in the kernel.  session.c is the only file that loads
 * BPF programs; what it learns leaves it as a struct profile.
 */
#ifndef PATHPROF_SESSION_H
#define PATHPROF_SESSION_H

#include "kernel/user-stages.h"
#include "profile/profile.h"

#define EVENTS_KB	16384

struct session;

struct session_config {
	unsigned int sample;	/* follow 1 in N all the time; 0: bursts */
	double budget;		/* percent of CPU time for bursts */
	bool fine;		/* attach the finer stages, too */
	unsigned int stage_groups; /* of --stages; 0: not asked for */
	bool drop_stacks;	/* keep the calls that led to a drop */
	bool nat;		/* a filter also means the ends beyond NAT */
	struct user_stages users;	/* of --stage: needs stage_groups */
	bool groups;		/* keep where packets belong */
	bool state;		/* and the state of their connections */
	bool stage_times;	/* keep how often a stage took how long */
	bool udp;
	unsigned int port;	/* of these, 0 or NULL: any */
	const char *addr;
	unsigned int prefix;	/* bits of addr that count */
	unsigned int dir, ifindex, netns;
	uint64_t cgroup;	/* id */
	unsigned int arm;	/* ARM_*, by these settings of mssfrac: */
	uint32_t arm_seed, arm_mark, arm_percent;
	const struct pcap_insn *pcap;	/* a filter in pcap syntax; NULL: none */
	unsigned int npcap;
	char filter[PROFILE_FILTER];	/* those from dir on, in words */
	const char *events;	/* the file of raw events; NULL: none */
	unsigned int capture;	/* bytes of each packet among the events */
	unsigned int events_kb;	/* room for them in the kernel; 0: EVENTS_KB */
};

/*
 * Load, attach, start.  0 or a negative errno, with the reason in err;
 * -EOPNOTSUPP if this kernel or this user cannot record.
 */
int session__start(struct session **out, const struct session_config *config,
		   char *err, size_t len);
/* Everything since the start, into an initialised profile. */
int session__read(struct session *s, struct profile *p);
/* What a live view shows beside the profile. */
struct session_pulse {
	bool in_bursts;
	uint64_t bursts;
	uint64_t age_ns;	/* since the last burst closed */
	uint64_t cost_ns;	/* CPU time of all bursts */
	double budget;		/* percent */
};
void session__pulse(struct session *s, struct session_pulse *pulse);
/* Another budget from now on; false: this session has none. */
bool session__set_budget(struct session *s, double percent);
/* Raw events into their file, and how many were lost; once stopped. */
int session__write_events(struct session *s, const struct profile *p,
			  uint64_t *lost, char *err, size_t len);
/* Stop following; session__read() then includes what is still followed. */
void session__stop(struct session *s);
/* Detach and unload: takes seconds. */
void session__free(struct session *s);

/* Which hooks this kernel has, without loading anything; errors likewise. */
int session__probe(struct profile *p, char *err, size_t len);

#endif
