// SPDX-License-Identifier: GPL-2.0
/*
 * Turns the words of the options that choose packets into what the session
 * wants: numbers of interfaces and namespaces, the prefix split off.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "choose.h"

/* "ADDR/BITS" to both; the text was checked when it was read. */
static void settle_addr(struct session_config *config)
{
	static char addr[INET6_ADDRSTRLEN];
	const char *slash;

	if (!config->addr)
		return;
	slash = strchr(config->addr, '/');
	snprintf(addr, sizeof(addr), "%.*s",
		 slash ? (int)(slash - config->addr) : 45, config->addr);
	config->addr = addr;
	config->prefix = slash ? atoi(slash + 1) :
			 strchr(addr, ':') ? 128 : 32;
}

static int settle_netns(struct choice *c, const char *command)
{
	char path[300];
	struct stat st;

	if (!c->netns)
		return 0;
	snprintf(path, sizeof(path), "%s%.250s",
		 strchr(c->netns, '/') ? "" : "/run/netns/", c->netns);
	if (stat(path, &st)) {
		complain("%s: no network namespace %s: %s", command, path,
			 strerror(errno));
		return EXIT_FAILED;
	}
	c->config.netns = st.st_ino;
	return 0;
}

int choice__settle(struct choice *c, const char *command)
{
	if (c->dir) {
		c->config.dir = !strcmp(c->dir, "rx") ? DIR_RX :
				!strcmp(c->dir, "tx") ? DIR_TX : DIR_ANY;
		if (!c->config.dir) {
			complain("%s: --dir takes rx or tx, not \"%s\"",
				 command, c->dir);
			return EXIT_USAGE;
		}
	}
	if (c->config.sample && c->config.budget) {
		complain("%s: --sample or --budget, not both", command);
		return EXIT_USAGE;
	}
	if (c->config.fine && !c->config.sample) {
		complain("%s: --fine needs --sample: windows attach "
			 "tracepoints only", command);
		return EXIT_USAGE;
	}
	if (!c->config.sample && !c->config.budget)
		c->config.budget = CHOICE_BUDGET;
	if (c->dev) {
		c->config.ifindex = if_nametoindex(c->dev);
		if (!c->config.ifindex) {
			complain("%s: no interface \"%s\" here", command,
				 c->dev);
			return EXIT_FAILED;
		}
	}
	settle_addr(&c->config);
	return settle_netns(c, command);
}
