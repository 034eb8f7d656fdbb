/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Settings of one network namespace.  Sysctls write them at any time; the
 * policies read them without a lock, with READ_ONCE().
 */
#ifndef MSSFRAC_SETTINGS_H
#define MSSFRAC_SETTINGS_H

#include <linux/types.h>

#include "window.h"

struct net;

/*
 * The one table of settings.  The module parameters, their modinfo text, the
 * sysctls and the check of mssfrac(4) are made from it.
 * name, type, lowest, highest and default value, unit, description
 */
#define MSSFRAC_SETTINGS(X)						\
	X(rx_frac, u8, 0, MSSFRAC_MAX_FRAC, 0, "steps per MSS",		\
	  "receiver: advertise windows in steps of MSS/N; 0 is off")	\
	X(tx_frac, u8, 0, MSSFRAC_MAX_FRAC, 0, "steps per MSS",		\
	  "sender: fill windows with segments smaller than the MSS; 0 is off") \
	X(rx_mss_est, u8, 0, 1, 0, "choice",				\
	  "receiver: estimate of the sender's MSS; 0 kernel, 1 conservative") \
	X(tx_steady, u8, 0, 1, 0, "choice",				\
	  "sender: lower the segment size; 0 at once, 1 step by step")	\
	X(seg_max, u32, 2, 256, 32, "segments",				\
	  "act while a window holds at most this many segments")	\
	X(ab_percent, u8, 0, 100, 100, "percent",			\
	  "share of connections in the treatment arm")			\
	X(ab_seed, u32, 0, 4294967295, 0, "key",			\
	  "key of the hash that picks the arm")				\
	X(ab_mark, u32, 0, 4294967294, 0, "socket mark",		\
	  "mark that pins to the control arm; mark + 1 pins to treatment; 0 is off")

struct mssfrac_settings {
#define X(name, type, ...) type name;
	MSSFRAC_SETTINGS(X)
#undef X
};

int mssfrac_settings_register(struct net *net);
void mssfrac_settings_unregister(struct net *net);

#endif /* MSSFRAC_SETTINGS_H */
