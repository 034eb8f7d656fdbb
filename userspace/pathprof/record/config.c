// SPDX-License-Identifier: GPL-2.0-only
/*
 * The constants that the BPF programs are loaded with: which packets, and how
 * often.  This file does not check what the kernel supports.
 */
#include <arpa/inet.h>
#include <math.h>
#include <string.h>
#include <sys/random.h>
#include "kernel/stage-groups.h"
#include "record/config.h"

/*
 * Quantiles of the geometric distribution with mean `sample`, one from each
 * of GAPS equally likely parts at a random place within the part.
 */
static void fill_gaps(uint32_t *gaps, unsigned int sample)
{
	double u, log_miss = log1p(-1.0 / sample);
	uint32_t random[GAPS];
	size_t i;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		memset(random, 0x80, sizeof(random));
	for (i = 0; i < GAPS; i++) {
		u = (i + (random[i] + 0.5) / 4294967296.0) / GAPS;
		gaps[i] = sample == 1 ? 1 :
			  1 + (uint32_t)floor(log1p(-u) / log_miss);
	}
}

static void set_addr(struct pathprof_config *c,
		     const struct session_config *config)
{
	unsigned int bits = config->prefix, i;
	uint8_t *mask = (uint8_t *)c->mask;

	if (!config->addr)
		return;
	if (inet_pton(AF_INET, config->addr, c->addr) == 1)
		c->addr_family = 4;
	else if (inet_pton(AF_INET6, config->addr, c->addr) == 1)
		c->addr_family = 6;
	for (i = 0; i < 16; i++, bits = (bits > 8) ? bits - 8 : 0)
		mask[i] = bits >= 8 ? 0xff : 0xff00 >> bits;
}

void config__fill(struct pathprof_config *c, uint32_t *gaps,
		  unsigned int sample, const struct session_config *config)
{
	c->sample = sample;
	c->port = config->port;
	c->dir = config->dir;
	c->ifindex = config->ifindex;
	c->netns = config->netns;
	c->udp = config->udp;
	c->icmp = stage_groups__icmp(config->stage_groups);
	c->stage_times = config->stage_times;
	c->stack = config->stage_groups != 0;
	c->users = config->users.n;
	c->by_owner = config->cgroup || config->arm;
	c->cgroup = config->cgroup;
	c->arm = config->arm;
	c->arm_seed = config->arm_seed;
	c->arm_mark = config->arm_mark;
	c->arm_percent = config->arm_percent;
	set_addr(c, config);
	fill_gaps(gaps, sample);
}
