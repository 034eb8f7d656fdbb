/* SPDX-License-Identifier: GPL-2.0-only */
/* What the module keeps per network namespace (main.c allocates it). */
#ifndef MSSFRAC_NETNS_H
#define MSSFRAC_NETNS_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/seqlock.h>
#include <linux/spinlock.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include "counters.h"
#include "settings.h"

/* The connections of a namespace are spread over shards, each with a lock. */
#define MSSFRAC_SHARDS 16

struct mssfrac_shard {
	spinlock_t lock;		/* of the other members */
	seqcount_spinlock_t changes;	/* one ended, or was extended */
	struct hlist_head live;		/* struct mssfrac_conn; read under RCU */
	struct mssfrac_totals ended;	/* sums of closed connections */
};

struct mssfrac_net {
	struct mssfrac_settings set;
	struct mutex reading;		/* one locked walk at a time (counters.c) */
	struct mssfrac_shard shards[MSSFRAC_SHARDS];
	struct ctl_table_header *sysctl_header;
	struct ctl_table *sysctl_table;
	bool files;			/* in /proc and /proc/sys (main.c) */
};

extern unsigned int mssfrac_net_id;

static inline struct mssfrac_net *mssfrac_net(const struct net *net)
{
	return net_generic(net, mssfrac_net_id);
}

#endif /* MSSFRAC_NETNS_H */
