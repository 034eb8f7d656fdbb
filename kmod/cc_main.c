// SPDX-License-Identifier: GPL-2.0-only
/*
 * mssfrac_cc.ko: the congestion control "mssfrac" as a module of its own.
 *
 * A socket that uses the congestion control holds this module, and so must not
 * hold mssfrac.ko, which diverts functions of the kernel.  Therefore this module
 * has no symbol of mssfrac.ko.  It looks mssfrac_segment_in_force() up whenever
 * mssfrac.ko is loaded, and forgets it before mssfrac.ko is gone.  Without
 * mssfrac.ko every segment is as large as the kernel makes it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/rcupdate.h>
#include <net/tcp.h>

#include "cong.h"
#include "segment.h"

/* mssfrac_segment_in_force() while mssfrac.ko is loaded; called under RCU. */
static typeof(mssfrac_segment_in_force) *tx_segment;

u32 mssfrac_cong_segment(struct sock *sk)
{
	u32 seg = tcp_sk(sk)->mss_cache;
	typeof(mssfrac_segment_in_force) *find;

	rcu_read_lock();
	find = READ_ONCE(tx_segment);
	if (find)
		seg = find(sk, seg);
	rcu_read_unlock();
	return max(seg, 1U);
}

/* The reference is put at once: module_event() hears of the end in time. */
static void segment_find(void)
{
	typeof(mssfrac_segment_in_force) *found = symbol_get(mssfrac_segment_in_force);

	if (found) {
		WRITE_ONCE(tx_segment, found);
		symbol_put(mssfrac_segment_in_force);
	}
}

static void segment_forget(void)
{
	WRITE_ONCE(tx_segment, NULL);
	synchronize_rcu();
}

static int module_event(struct notifier_block *nb, unsigned long event,
			void *data)
{
	const struct module *module = data;

	if (strcmp(module->name, "mssfrac"))
		return NOTIFY_DONE;
	if (event == MODULE_STATE_LIVE)
		segment_find();
	else if (event == MODULE_STATE_GOING)
		segment_forget();
	return NOTIFY_OK;
}

static struct notifier_block modules = {
	.notifier_call = module_event,
};

static int __init cc_init(void)
{
	int err = register_module_notifier(&modules);

	if (err)
		return err;
	segment_find();
	err = mssfrac_cong_register();
	if (err)
		unregister_module_notifier(&modules);
	return err;
}

/* No socket uses the congestion control: each of them holds the module. */
static void __exit cc_exit(void)
{
	mssfrac_cong_unregister();
	unregister_module_notifier(&modules);
}

module_init(cc_init);
module_exit(cc_exit);

MODULE_DESCRIPTION("CUBIC with a window in fractions of the MSS");
MODULE_AUTHOR("The mssfrac maintainers");
MODULE_LICENSE("GPL");
MODULE_VERSION(MSSFRAC_VERSION);
/* For an administrator's setsockopt(TCP_CONGESTION) and sysctl. */
MODULE_ALIAS("tcp_mssfrac");
