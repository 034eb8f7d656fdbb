/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Settings of one network namespace.  Sysctls write them at any time; the
 * policies read them without a lock, with READ_ONCE().
 */
#ifndef MSSFRAC_SETTINGS_H
#define MSSFRAC_SETTINGS_H

#include <linux/types.h>

struct net;

struct mssfrac_settings {
	u8 rx_frac;	/* 0 off, 1..64: offer windows in steps of rcv_mss/N */
	u8 tx_frac;	/* 0 off, 1..64: segments in steps of MSS/N */
	u8 rx_mss_est;	/* sender's MSS: 0 the kernel's, 1 conservative */
	u8 tx_steady;	/* 0, 1: lower the MSS only in a locked window */
	u8 ab_percent;	/* share of connections in the treated arm */
	u32 seg_max;	/* act while a window holds at most this many segments */
	u32 ab_seed;	/* key of the hash that picks the arm */
	u32 ab_mark;	/* socket mark that pins to stock, + 1 to treated; 0 off */
};

int mssfrac_settings_register(struct net *net);
void mssfrac_settings_unregister(struct net *net);

#endif /* MSSFRAC_SETTINGS_H */
