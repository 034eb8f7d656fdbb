// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of one namespace: per CPU, per arm, shown as "key value" lines in
 * /proc/net/mssfrac.  Monotonic from insmod to rmmod; never reset.
 */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/seq_file_net.h>

#include "mssfrac.h"

static const char *const arm_names[MSSFRAC_ARMS] = {
	[MSSFRAC_STOCK] = "stock",
	[MSSFRAC_TREATED] = "treated",
};

static const char *const counter_names[MSSFRAC_NR_COUNTERS] = {
#define X(name) [MSSFRAC_##name] = #name,
	MSSFRAC_COUNTERS(X)
#undef X
};

static u64 sum(const struct mssfrac_net *mn, int arm, int counter)
{
	u64 total = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		total += per_cpu_ptr(mn->stats, cpu)->v[arm][counter];
	return total;
}

static int stats_show(struct seq_file *seq, void *v)
{
	const struct mssfrac_net *mn = mssfrac_net(seq_file_single_net(seq));
	int arm, i;

	for (arm = 0; arm < MSSFRAC_ARMS; arm++)
		for (i = 0; i < MSSFRAC_NR_COUNTERS; i++)
			seq_printf(seq, "%s_%s %llu\n", arm_names[arm],
				   counter_names[i], sum(mn, arm, i));
	return 0;
}

int mssfrac_stats_register(struct net *net)
{
	struct mssfrac_net *mn = mssfrac_net(net);

	mn->stats = alloc_percpu(struct mssfrac_stats);
	if (!mn->stats)
		return -ENOMEM;
	if (!proc_create_net_single("mssfrac", 0444, net->proc_net, stats_show,
				    NULL)) {
		free_percpu(mn->stats);
		return -ENOMEM;
	}
	return 0;
}

void mssfrac_stats_unregister(struct net *net)
{
	remove_proc_entry("mssfrac", net->proc_net);
	free_percpu(mssfrac_net(net)->stats);
}
