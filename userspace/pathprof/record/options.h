/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options that record and top share: which packets are followed, how many
 * of them, and the cost that is allowed.
 */
#ifndef PATHPROF_RECORD_OPTIONS_H
#define PATHPROF_RECORD_OPTIONS_H

#include "base/tool.h"
#include "record/session.h"

struct record_options {
	struct session_config config;
	const char *stages, *functions;
	const char *dir, *netns, *dev, *cgroup, *arm, *filter;
};

#define DEFAULT_BUDGET	0.4	/* percent of CPU time, if nothing is asked */

#define RECORD_OPTIONS(o) \
	{ 0, "sample", OPT_UINT, &(o)->config.sample, 1, 1000000000, "N", \
	  "follow 1 in N packets, at random, all the time" }, \
	{ 0, "budget", OPT_PERCENT, &(o)->config.budget, 0.01, 50, "PCT", \
	  "CPU time for sampling bursts (default 0.4 %)" }, \
	{ 0, "fine", OPT_FLAG, &(o)->config.fine, 0, 0, NULL, \
	  "also attach the finer stages (needs --sample)" }, \
	{ 0, "stages", OPT_TEXT, &(o)->stages, 0, 0, "LIST", \
	  "also attach stages of the host: forward,... or all" }, \
	{ 0, "stage", OPT_TEXT, &(o)->functions, 0, 0, "LIST", \
	  "also attach these functions of the kernel as stages" }, \
	{ 0, "stage-times", OPT_FLAG, &(o)->config.stage_times, 0, 0, NULL, \
	  "with --sample: keep histograms of stages, as bursts do" }, \
	{ 0, "drop-stacks", OPT_FLAG, &(o)->config.drop_stacks, 0, 0, NULL, \
	  "keep the calls that led to each drop" }, \
	{ 0, "state", OPT_FLAG, &(o)->config.state, 0, 0, NULL, \
	  "keep the connection's windows, round-trip time, queues" }, \
	{ 0, "udp", OPT_FLAG, &(o)->config.udp, 0, 0, NULL, \
	  "also follow UDP packets" }, \
	{ 0, "port", OPT_UINT, &(o)->config.port, 1, 65535, "PORT", \
	  "only packets from or to this port" }, \
	{ 0, "addr", OPT_ADDR, &(o)->config.addr, 0, 0, "ADDR", \
	  "only packets from or to this address (or ADDR/BITS)" }, \
	{ 0, "filter", OPT_TEXT, &(o)->filter, 0, 0, "EXPR", \
	  "only packets that match EXPR, in pcap syntax" }, \
	{ 0, "nat", OPT_FLAG, &(o)->config.nat, 0, 0, NULL, \
	  "these three also match a packet's ends beyond NAT" }, \
	{ 0, "dir", OPT_TEXT, &(o)->dir, 0, 0, "DIR", \
	  "only received (rx) or only sent (tx) packets" }, \
	{ 0, "dev", OPT_TEXT, &(o)->dev, 0, 0, "DEVICE", \
	  "only packets received or sent by this interface" }, \
	{ 0, "netns", OPT_TEXT, &(o)->netns, 0, 0, "NAME", \
	  "only packets of this network namespace" }, \
	{ 0, "cgroup", OPT_TEXT, &(o)->cgroup, 0, 0, "PATH", \
	  "only packets of sockets of this cgroup v2 or below it" }, \
	{ 0, "arm", OPT_TEXT, &(o)->arm, 0, 0, "ARM", \
	  "only packets of mssfrac's arm: stock or treated" }

/* Words into numbers; 0, or an exit status after a complaint. */
int record_options__settle(struct record_options *o, const char *command);

#endif
