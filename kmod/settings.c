// SPDX-License-Identifier: GPL-2.0-only
/*
 * Turns the table of settings into sysctls net.mssfrac.* of each network
 * namespace, and into module parameters of the same names.  A parameter is the
 * start value of every namespace.  A value out of range is refused with EINVAL
 * and the old value stays.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/stringify.h>
#include <linux/sysctl.h>

#include "compat.h"
#include "netns.h"
#include "settings.h"

static struct mssfrac_settings start = {
#define X(name, type, low, high, value, ...) .name = value,
	MSSFRAC_SETTINGS(X)
#undef X
};

struct setting {
	const char *name;
	unsigned int low, high;
	size_t offset;	/* in struct mssfrac_settings */
	size_t size;	/* bytes: u8 or u32 */
};

enum {
#define X(name, ...) SETTING_##name,
	MSSFRAC_SETTINGS(X)
#undef X
	NR_SETTINGS
};

static const struct setting settings[NR_SETTINGS] = {
#define X(_name, type, _low, _high, ...)				\
	[SETTING_##_name] = {						\
		.name = #_name,						\
		.low = _low,						\
		.high = _high,						\
		.offset = offsetof(struct mssfrac_settings, _name),	\
		.size = sizeof(type),					\
	},
	MSSFRAC_SETTINGS(X)
#undef X
};

static void *field(struct mssfrac_settings *set, const struct setting *setting)
{
	return (void *)set + setting->offset;
}

/* --- Module parameters ---------------------------------------------------- */

static int param_set(const char *val, const struct kernel_param *kp)
{
	const struct setting *setting = kp->arg;
	void *to = field(&start, setting);
	unsigned int n;
	int err = kstrtouint(val, 0, &n);

	if (err)
		return err;
	if (n < setting->low || n > setting->high)
		return -EINVAL;
	if (setting->size == sizeof(u8))
		*(u8 *)to = n;
	else
		*(u32 *)to = n;
	return 0;
}

static int param_get(char *buf, const struct kernel_param *kp)
{
	const struct setting *setting = kp->arg;
	void *from = field(&start, setting);

	return sysfs_emit(buf, "%u\n", setting->size == sizeof(u8) ?
			  *(u8 *)from : *(u32 *)from);
}

static const struct kernel_param_ops param_ops = {
	.set = param_set,
	.get = param_get,
};

#define X(name, type, low, high, value, unit, text)			\
	module_param_cb(name, &param_ops,				\
			(void *)&settings[SETTING_##name], 0444);	\
	MODULE_PARM_DESC(name, text " [" unit ", " __stringify(low) ".." \
			 __stringify(high) ", default " __stringify(value) "]");
MSSFRAC_SETTINGS(X)
#undef X

/* --- Sysctls ---------------------------------------------------------------- */

static void describe(struct ctl_table *entry, const struct setting *setting,
		     struct mssfrac_settings *set)
{
	entry->procname = setting->name;
	entry->data = field(set, setting);
	entry->maxlen = setting->size;
	entry->mode = 0644;
	entry->proc_handler = setting->size == sizeof(u8) ?
			      proc_dou8vec_minmax : proc_douintvec_minmax;
	/* Only read. */
	entry->extra1 = (void *)&setting->low;
	entry->extra2 = (void *)&setting->high;
}

int mssfrac_settings_register(struct net *net)
{
	struct mssfrac_net *mn = mssfrac_net(net);
	int i;

	mn->set = start;
	/* An empty entry ends the table before 6.6, see compat.h. */
	mn->sysctl_table = kcalloc(NR_SETTINGS + 1, sizeof(*mn->sysctl_table),
				   GFP_KERNEL_ACCOUNT);
	if (!mn->sysctl_table)
		return -ENOMEM;
	for (i = 0; i < NR_SETTINGS; i++)
		describe(&mn->sysctl_table[i], &settings[i], &mn->set);

	mn->sysctl_header = register_net_sysctl_sz(net, "net/mssfrac",
						   mn->sysctl_table,
						   NR_SETTINGS);
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
