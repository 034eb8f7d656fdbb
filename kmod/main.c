// SPDX-License-Identifier: GPL-2.0-only
/*
 * mssfrac: fractional-MSS windows for per-connection A/B experiments.
 *
 * After a bare insmod nothing changes on the wire.  The module counts the bytes
 * that window alignment costs each connection (/proc/net/mssfrac).  Policies
 * are enabled per network namespace (net.mssfrac.*).  This file only orders
 * init and exit.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "conn.h"
#include "counters.h"
#include "hook.h"
#include "netns.h"
#include "segment.h"
#include "settings.h"

unsigned int mssfrac_net_id __read_mostly;
static bool unloading;

static int __net_init net_init(struct net *net)
{
	struct mssfrac_net *mn = mssfrac_net(net);
	int err;

	mssfrac_conn_net_init(mn);
	if (READ_ONCE(unloading))
		return 0;
	err = mssfrac_counters_register(net);
	if (err)
		return err;
	err = mssfrac_settings_register(net);
	if (err)
		mssfrac_counters_unregister(net);
	mn->files = !err;
	return err;
}

static void remove_files(struct net *net)
{
	struct mssfrac_net *mn = mssfrac_net(net);

	if (!mn->files)
		return;
	mn->files = false;
	mssfrac_settings_unregister(net);
	mssfrac_counters_unregister(net);
}

static void __net_exit net_exit(struct net *net)
{
	remove_files(net);
}

static struct pernet_operations net_ops = {
	.init = net_init,
	.exit = net_exit,
	.id = &mssfrac_net_id,
	.size = sizeof(struct mssfrac_net),
};

/* A namespace that has files, and a reference to it; NULL if none is left. */
static struct net *get_net_with_files(void)
{
	struct net *net, *found = NULL;

	rcu_read_lock();
	for_each_net_rcu(net)
		if (mssfrac_net(net)->files && maybe_get_net(net)) {
			found = net;
			break;
		}
	rcu_read_unlock();
	return found;
}

/*
 * A file can be removed only once nobody is inside it, and who reads into memory
 * whose pages never come (FUSE, userfaultfd) stays as long as they like.  So
 * only rmmod may wait for them.  unregister_pernet_subsys() would do so with
 * pernet_ops_rwsem held, and all of the host's namespaces with it.
 */
static void remove_all_files(void)
{
	struct net *net;

	WRITE_ONCE(unloading, true);
	while ((net = get_net_with_files())) {
		remove_files(net);
		put_net(net);
	}
}

static int __init mssfrac_init(void)
{
	int err = register_pernet_subsys(&net_ops);

	if (err)
		return err;
	err = mssfrac_conn_init();
	if (err)
		goto unregister_pernet;
	err = mssfrac_hook_install();
	if (err)
		goto exit_conn;
	pr_info("version " MSSFRAC_VERSION ", by the mssfrac maintainers\n");
	return 0;

exit_conn:
	mssfrac_conn_exit();
unregister_pernet:
	remove_all_files();
	unregister_pernet_subsys(&net_ops);
	return err;
}

static void __exit mssfrac_exit(void)
{
	mssfrac_hook_remove();
	mssfrac_segment_exit();
	mssfrac_conn_exit();
	remove_all_files();
	unregister_pernet_subsys(&net_ops);
}

module_init(mssfrac_init);
module_exit(mssfrac_exit);

MODULE_DESCRIPTION("Fractional-MSS windows for A/B experiments");
MODULE_AUTHOR("The mssfrac maintainers");
MODULE_LICENSE("GPL");
MODULE_VERSION(MSSFRAC_VERSION);
