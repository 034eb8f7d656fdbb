/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The two arms of an experiment.  /proc/net/mssfrac and the tracepoints call
 * the control arm "stock" and the treatment arm "treated".
 */
#ifndef MSSFRAC_ARM_H
#define MSSFRAC_ARM_H

#include <linux/types.h>

struct in6_addr;
struct mssfrac_settings;
struct sock;

enum mssfrac_arm {
	MSSFRAC_STOCK,
	MSSFRAC_TREATED,
	MSSFRAC_ARMS
};

enum mssfrac_arm mssfrac_arm_of(const struct sock *sk,
				const struct mssfrac_settings *set,
				bool *pinned);
void mssfrac_arm_addresses(const struct sock *sk, struct in6_addr *local,
			   struct in6_addr *peer);

#endif /* MSSFRAC_ARM_H */
