/* SPDX-License-Identifier: GPL-2.0-only */
/* What the module keeps per network namespace (main.c allocates it). */
#ifndef MSSFRAC_NETNS_H
#define MSSFRAC_NETNS_H

#include <linux/list.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "counters.h"
#include "settings.h"

/* Connections of a namespace are spread over shards; conn.c locks each shard. */
#define MSSFRAC_SHARDS 16

struct mssfrac_shard {
	struct hlist_head live;		/* struct mssfrac_conn */
	struct mssfrac_totals ended;	/* sums of closed connections */
};

struct mssfrac_net {
	struct mssfrac_settings set;
	struct mssfrac_shard shards[MSSFRAC_SHARDS];
	struct ctl_table_header *sysctl_header;
	struct ctl_table *sysctl_table;
};

extern unsigned int mssfrac_net_id;

static inline struct mssfrac_net *mssfrac_net(const struct net *net)
{
	return net_generic(net, mssfrac_net_id);
}

#endif /* MSSFRAC_NETNS_H */
