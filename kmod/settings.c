// SPDX-License-Identifier: GPL-2.0
/*
 * net.mssfrac.*: the settings of one namespace, and the module parameters of
 * the same names that give every namespace its start values.  The only place
 * that knows their ranges; a value out of range is EINVAL and the old one
 * stays.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sysctl.h>

#include "compat.h"
#include "est.h"
#include "netns.h"
#include "settings.h"
#include "window.h"

#define SEG_MAX_MIN	2
#define SEG_MAX_MAX	256

static struct mssfrac_settings start = {
	.ab_percent = 100,
	.seg_max = 32,
};

/* What a parameter may hold, and where it is kept: one of u8, u32. */
struct param_range {
	unsigned int min, max;
	u8 *u8;
	u32 *u32;
};

static int param_set_ranged(const char *val, const struct kernel_param *kp)
{
	const struct param_range *range = kp->arg;
	unsigned int n;
	int err = kstrtouint(val, 0, &n);

	if (err)
		return err;
	if (n < range->min || n > range->max)
		return -EINVAL;
	if (range->u8)
		*range->u8 = n;
	else
		*range->u32 = n;
	return 0;
}

static int param_get_ranged(char *buf, const struct kernel_param *kp)
{
	const struct param_range *range = kp->arg;

	return sysfs_emit(buf, "%u\n", range->u8 ? *range->u8 : *range->u32);
}

static const struct kernel_param_ops ranged = {
	.set = param_set_ranged,
	.get = param_get_ranged,
};

#define PARAM(name, type, lo, hi, text)					\
	static const struct param_range name##_range = {			\
		.min = lo, .max = hi, .type = &start.name,		\
	};								\
	module_param_cb(name, &ranged, (void *)&name##_range, 0444);	\
	MODULE_PARM_DESC(name, text)

PARAM(rx_frac, u8, 0, MSSFRAC_MAX_FRAC,
      "receiver window step is rcv_mss/N; 0 off, 1..64 (start value)");
PARAM(tx_frac, u8, 0, MSSFRAC_MAX_FRAC,
      "sender segment step is MSS/N; 0 off, 1..64 (start value)");
PARAM(rx_mss_est, u8, 0, 1,
      "receiver's estimate of the sender's MSS: 0 kernel, 1 conservative (start value)");
PARAM(tx_steady, u8, 0, 1,
      "sender lowers the MSS step by step in a steady window; 0, 1 (start value)");
PARAM(seg_max, u32, SEG_MAX_MIN, SEG_MAX_MAX,
      "act while a window holds at most this many segments; 2..256, default 16");
PARAM(ab_percent, u8, 0, 100,
      "share of connections in the treated arm; 0..100, default 100");
PARAM(ab_seed, u32, 0, U32_MAX,
      "key of the hash that picks the arm; any u32, default 0");
PARAM(ab_mark, u32, 0, U32_MAX - 1,
      "socket mark that pins to the stock arm, one more to treated; 0 off");

/* Whoever asks for the estimate starts the probe it comes from. */
static int rx_mss_est_handler(MSSFRAC_CTL_TABLE *table, int write, void *buffer,
			      size_t *lenp, loff_t *ppos)
{
	int err = proc_dou8vec_minmax(table, write, buffer, lenp, ppos);

	if (!err && write && *(u8 *)table->data)
		err = mssfrac_est_want();
	return err;
}

static unsigned int frac_max = MSSFRAC_MAX_FRAC;
static unsigned int percent_max = 100;
static unsigned int mark_max = U32_MAX - 1;	/* treated is one more */
static unsigned int seg_max_min = SEG_MAX_MIN;
static unsigned int seg_max_max = SEG_MAX_MAX;

/* .data holds the offset in struct mssfrac_settings until registration. */
#define OFFSET(field) ((void *)offsetof(struct mssfrac_settings, field))

static const struct ctl_table template[] = {
	{
		.procname = "rx_frac",
		.data = OFFSET(rx_frac),
		.maxlen = sizeof(u8),
		.mode = 0644,
		.proc_handler = proc_dou8vec_minmax,
		.extra1 = SYSCTL_ZERO,
		.extra2 = &frac_max,
	},
	{
		.procname = "tx_frac",
		.data = OFFSET(tx_frac),
		.maxlen = sizeof(u8),
		.mode = 0644,
		.proc_handler = proc_dou8vec_minmax,
		.extra1 = SYSCTL_ZERO,
		.extra2 = &frac_max,
	},
	{
		.procname = "rx_mss_est",
		.data = OFFSET(rx_mss_est),
		.maxlen = sizeof(u8),
		.mode = 0644,
		.proc_handler = rx_mss_est_handler,
		.extra1 = SYSCTL_ZERO,
		.extra2 = SYSCTL_ONE,
	},
	{
		.procname = "tx_steady",
		.data = OFFSET(tx_steady),
		.maxlen = sizeof(u8),
		.mode = 0644,
		.proc_handler = proc_dou8vec_minmax,
		.extra1 = SYSCTL_ZERO,
		.extra2 = SYSCTL_ONE,
	},
	{
		.procname = "seg_max",
		.data = OFFSET(seg_max),
		.maxlen = sizeof(u32),
		.mode = 0644,
		.proc_handler = proc_douintvec_minmax,
		.extra1 = &seg_max_min,
		.extra2 = &seg_max_max,
	},
	{
		.procname = "ab_percent",
		.data = OFFSET(ab_percent),
		.maxlen = sizeof(u8),
		.mode = 0644,
		.proc_handler = proc_dou8vec_minmax,
		.extra1 = SYSCTL_ZERO,
		.extra2 = &percent_max,
	},
	{
		.procname = "ab_seed",
		.data = OFFSET(ab_seed),
		.maxlen = sizeof(u32),
		.mode = 0644,
		.proc_handler = proc_douintvec,
	},
	{
		.procname = "ab_mark",
		.data = OFFSET(ab_mark),
		.maxlen = sizeof(u32),
		.mode = 0644,
		.proc_handler = proc_douintvec_minmax,
		.extra1 = SYSCTL_ZERO,
		.extra2 = &mark_max,
	},
	{ }	/* ends the table before 6.6, see compat.h */
};

int mssfrac_settings_register(struct net *net)
{
	struct mssfrac_net *mn = mssfrac_net(net);
	size_t i;

	if (start.rx_mss_est) {
		int err = mssfrac_est_want();

		if (err)
			return err;
	}
	mn->set = start;
	mn->sysctl_table = kmemdup(template, sizeof(template), GFP_KERNEL);
	if (!mn->sysctl_table)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(template) - 1; i++)
		mn->sysctl_table[i].data = (void *)&mn->set +
					   (unsigned long)template[i].data;

	mn->sysctl_header = register_net_sysctl_sz(net, "net/mssfrac",
						   mn->sysctl_table,
						   ARRAY_SIZE(template) - 1);
	if (!mn->sysctl_header) {
		kfree(mn->sysctl_table);
		return -ENOMEM;
	}
	return 0;
}

void mssfrac_settings_unregister(struct net *net)
{
	struct mssfrac_net *mn = mssfrac_net(net);

	unregister_net_sysctl_table(mn->sysctl_header);
	kfree(mn->sysctl_table);
}
