/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options of record and top that choose which packets are followed, and
 * limit what that may cost.
 */
#ifndef PATHPROF_CHOOSE_H
#define PATHPROF_CHOOSE_H

#include "session.h"
#include "pathprof-tool.h"

struct choice {
	struct session_config config;
	const char *stages;
	const char *dir, *netns, *dev, *cgroup, *arm, *filter;
	bool budget;
};

#define CHOICE_BUDGET	0.4	/* percent of CPU time, if nothing is asked */

#define CHOICE_OPTIONS(c) \
	{ 0, "sample", OPT_UINT, &(c)->config.sample, 1, 1000000000, "N", \
	  "follow 1 in N packets, at random, all the time" }, \
	{ 0, "budget", OPT_PERCENT, &(c)->config.budget, 0.01, 50, "PCT", \
	  "CPU time for sampling bursts (default 0.4 %)" }, \
	{ 0, "fine", OPT_FLAG, &(c)->config.fine, 0, 0, NULL, \
	  "attach the finer stages, too (needs --sample)" }, \
	{ 0, "stages", OPT_TEXT, &(c)->stages, 0, 0, "LIST", \
	  "one path through the host: forward,netfilter,... or all" }, \
	{ 0, "stage-times", OPT_FLAG, &(c)->config.stage_times, 0, 0, NULL, \
	  "with --sample: keep how long stages take, as bursts do" }, \
	{ 0, "state", OPT_FLAG, &(c)->config.state, 0, 0, NULL, \
	  "keep windows, round-trip time and queues of connections" }, \
	{ 0, "udp", OPT_FLAG, &(c)->config.udp, 0, 0, NULL, \
	  "follow UDP packets, too" }, \
	{ 0, "port", OPT_UINT, &(c)->config.port, 1, 65535, "PORT", \
	  "only packets from or to this port" }, \
	{ 0, "addr", OPT_ADDR, &(c)->config.addr, 0, 0, "ADDR", \
	  "only from or to this address (or ADDR/BITS)" }, \
	{ 0, "filter", OPT_TEXT, &(c)->filter, 0, 0, "EXPR", \
	  "only packets that match this, in pcap syntax" }, \
	{ 0, "dir", OPT_TEXT, &(c)->dir, 0, 0, "DIR", \
	  "rx or tx: only received, or only sent" }, \
	{ 0, "dev", OPT_TEXT, &(c)->dev, 0, 0, "DEVICE", \
	  "only packets received or sent by this interface" }, \
	{ 0, "netns", OPT_TEXT, &(c)->netns, 0, 0, "NAME", \
	  "only packets of this network namespace" }, \
	{ 0, "cgroup", OPT_TEXT, &(c)->cgroup, 0, 0, "PATH", \
	  "only of sockets of this cgroup v2 or below it" }, \
	{ 0, "arm", OPT_TEXT, &(c)->arm, 0, 0, "ARM", \
	  "only of mssfrac's arm: stock or treated" }

/* Words into numbers; 0, or an exit status after a complaint. */
int choice__settle(struct choice *c, const char *command);

#endif
