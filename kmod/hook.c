// SPDX-License-Identifier: GPL-2.0-only
/*
 * Diverts __tcp_select_window() and tcp_current_mss() with ftrace, as livepatch
 * does (FTRACE_OPS_FL_IPMODIFY).  The wrappers call the kernel's own function
 * for the stock value and hand it to the policies.  The policies themselves
 * are elsewhere.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/ftrace.h>
#include <linux/kprobes.h>
#include <linux/rcupdate.h>
#include <linux/static_call.h>
#include <net/tcp.h>

#include "compat.h"
#include "hook.h"
#include "rx.h"
#include "tx.h"

/*
 * Call the originals directly, at the instruction after their ftrace call.  A
 * direct call needs no landing pad (IBT, FineIBT).  It does not enter ftrace a
 * second time, so other tracers still count one call each.
 */
DEFINE_STATIC_CALL_NULL(stock_select_window, __tcp_select_window);
DEFINE_STATIC_CALL_NULL(stock_current_mss, tcp_current_mss);

static notrace u32 select_window(struct sock *sk)
{
	return mssfrac_rx_window(sk, static_call(stock_select_window)(sk));
}

static notrace unsigned int current_mss(struct sock *sk)
{
	return mssfrac_tx_mss(sk, static_call(stock_current_mss)(sk));
}

struct hook {
	const char *name;	/* kernel function */
	void *wrapper;
	struct ftrace_ops ops;
};

static void notrace divert(unsigned long ip, unsigned long parent_ip,
			   struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct hook *hook = container_of(ops, struct hook, ops);

	ftrace_regs_set_instruction_pointer(fregs, (unsigned long)hook->wrapper);
}

/*
 * PERMANENT: kernel.ftrace_enabled=0 must not silently end the treatment.
 * No RECURSION: since 5.11 that flag requests a guard of about 60 instructions
 * per call.  This callback calls nothing and does not need it.
 */
#define HOOK(_name, _wrapper) {						\
	.name = #_name,							\
	.wrapper = _wrapper,						\
	.ops = {							\
		.func = divert,						\
		.flags = FTRACE_OPS_FL_IPMODIFY |			\
			 FTRACE_OPS_FL_PERMANENT,			\
	},								\
}

static struct hook select_window_hook =
	HOOK(__tcp_select_window, select_window);
static struct hook current_mss_hook = HOOK(tcp_current_mss, current_mss);

/* Address of the function's ftrace call, which kprobes can look up. */
static void *ftrace_site(const char *name)
{
	struct kprobe kp = {
		.symbol_name = name,
		.flags = KPROBE_FLAG_DISABLED,	/* look up, do not arm */
	};
	int err = register_kprobe(&kp);

	if (err)
		return ERR_PTR(err);
	unregister_kprobe(&kp);
	return kp.addr;
}

static int hook_prepare(struct hook *hook, void **behind)
{
	void *site = ftrace_site(hook->name);
	int err;

	if (IS_ERR(site))
		return PTR_ERR(site);
	/* -EINVAL if the compiler left no ftrace call there. */
	err = ftrace_set_filter_ip(&hook->ops, (unsigned long)site, 0, 0);
	if (err)
		return err;
	*behind = site + MCOUNT_INSN_SIZE;
	return 0;
}

static int hook_failed(const struct hook *hook, int err)
{
	pr_err("cannot divert %s (error %d); %s\n", hook->name, err,
	       err == -EBUSY ? "another owner diverts it, or kernel.ftrace_enabled is 0" :
	       err == -ENOMEM ? "out of memory" :
	       "this kernel lacks it or ftrace cannot reach it");
	return err;
}

/*
 * ftrace returns -EAGAIN while a BPF trampoline of the function is updated, and
 * expects the caller to try again.
 */
static int hook_register(struct hook *hook)
{
	int tries = 100, err;

	do {
		err = register_ftrace_function(&hook->ops);
	} while (err == -EAGAIN && --tries && !msleep_interruptible(1));
	return err;
}

/* It fails only if ftrace has shut itself down, and says so. */
static void hook_unregister(struct hook *hook)
{
	WARN_ON_ONCE(unregister_ftrace_function(&hook->ops));
}

int mssfrac_hook_install(void)
{
	void *select_window_stock, *current_mss_stock;
	int err;

	err = hook_prepare(&select_window_hook, &select_window_stock);
	if (err)
		return hook_failed(&select_window_hook, err);
	err = hook_prepare(&current_mss_hook, &current_mss_stock);
	if (err) {
		hook_failed(&current_mss_hook, err);
		goto free_select_window_filter;
	}

	static_call_update(stock_select_window,
			   (typeof(__tcp_select_window) *)select_window_stock);
	static_call_update(stock_current_mss,
			   (typeof(tcp_current_mss) *)current_mss_stock);

	err = hook_register(&select_window_hook);
	if (err) {
		hook_failed(&select_window_hook, err);
		goto free_current_mss_filter;
	}
	err = hook_register(&current_mss_hook);
	if (err) {
		hook_failed(&current_mss_hook, err);
		goto unregister_select_window;
	}
	return 0;

unregister_select_window:
	hook_unregister(&select_window_hook);
	synchronize_rcu_tasks();
free_current_mss_filter:
	ftrace_free_filter(&current_mss_hook.ops);
free_select_window_filter:
	ftrace_free_filter(&select_window_hook.ops);
	return err;
}

/* On return no CPU and no preempted task is in either wrapper. */
void mssfrac_hook_remove(void)
{
	hook_unregister(&current_mss_hook);
	hook_unregister(&select_window_hook);
	/*
	 * Unregistering has waited for the trampolines.  Wrappers never sleep, but
	 * a task may be preempted inside one.
	 */
	synchronize_rcu_tasks();
	ftrace_free_filter(&current_mss_hook.ops);
	ftrace_free_filter(&select_window_hook.ops);
}
