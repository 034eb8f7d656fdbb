// SPDX-License-Identifier: GPL-2.0-only
/*
 * /proc/net/mssfrac: the counters of one namespace as "key value" lines.  They
 * are summed over its connections when read.  They only grow, from insmod to
 * rmmod, and are never reset.
 */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/seq_file_net.h>

#include "conn.h"
#include "counters.h"
#include "netns.h"

static const char *const arm_names[MSSFRAC_ARMS] = {
	[MSSFRAC_STOCK] = "stock",
	[MSSFRAC_TREATED] = "treated",
};

static const char *const counter_names[MSSFRAC_NR_COUNTERS] = {
#define X(name) [MSSFRAC_##name] = #name,
	MSSFRAC_COUNTERS(X)
#undef X
};

static int stats_show(struct seq_file *seq, void *v)
{
	struct mssfrac_totals totals;
	int arm, i;

	mssfrac_conn_sum(mssfrac_net(seq_file_single_net(seq)), &totals);
	for (arm = 0; arm < MSSFRAC_ARMS; arm++)
		for (i = 0; i < MSSFRAC_NR_COUNTERS; i++)
			seq_printf(seq, "%s_%s %llu\n", arm_names[arm],
				   counter_names[i], totals.v[arm][i]);
	return 0;
}

int mssfrac_counters_register(struct net *net)
{
	if (!proc_create_net_single("mssfrac", 0444, net->proc_net, stats_show,
				    NULL))
		return -ENOMEM;
	return 0;
}

void mssfrac_counters_unregister(struct net *net)
{
	remove_proc_entry("mssfrac", net->proc_net);
}
