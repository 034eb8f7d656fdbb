/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Differences between kernel versions.  All other files are written for the
 * newest kernel.  Each entry names the release, the upstream change, and when
 * the entry can go.
 */
#ifndef MSSFRAC_COMPAT_H
#define MSSFRAC_COMPAT_H

#include <linux/ftrace.h>
#include <linux/version.h>
#include <net/net_namespace.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#error "mssfrac needs Linux 6.1 or newer"
#endif

/* hook.c skips the function's ftrace call and relies on its length. */
#if !defined(CONFIG_X86_64) || !defined(CONFIG_DYNAMIC_FTRACE_WITH_ARGS)
#error "mssfrac needs x86-64 with CONFIG_DYNAMIC_FTRACE_WITH_ARGS"
#endif
#ifdef CONFIG_PREEMPT_RT
#error "mssfrac does not support PREEMPT_RT: its probes take locks that sleep there"
#endif
#if !defined(CONFIG_KPROBES)
#error "mssfrac needs CONFIG_KPROBES to find the functions it diverts"
#endif

/*
 * 6.6, commit 95d4977876d6 ("sysctl: Add size to register_net_sysctl
 * function"): the size of a table is an argument.  Until 6.11, commit
 * d7a76ec87195 ("sysctl: Remove check for sentinel element in ctl_table
 * arrays"), an empty entry also ends a table; it is harmless beyond the size.
 * Goes when the minimum is 6.6.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define register_net_sysctl_sz(net, path, table, size)	\
	register_net_sysctl(net, path, table)
#endif

/*
 * 6.2, commit 0ef86097f127 ("ftrace: rename ftrace_instruction_pointer_set()
 * -> ftrace_regs_set_instruction_pointer()").  Goes when the minimum is 6.2.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define ftrace_regs_set_instruction_pointer(fregs, ip)	\
	ftrace_instruction_pointer_set(fregs, ip)
#endif

#endif /* MSSFRAC_COMPAT_H */
