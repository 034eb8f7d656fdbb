/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Functions of the kernel that the user wants as stages (--stage).  Each gets a
 * packet as one of its arguments.
 */
#ifndef PATHPROF_USER_STAGES_H
#define PATHPROF_USER_STAGES_H

#include "profile/profile.h"

struct user_stages {
	size_t n;
	char functions[USER_STAGES][sizeof(((struct profile_stage *)0)->name)];
	uint8_t arguments[USER_STAGES];	/* which one is the packet, from 0 */
};

/* Read a list, with commas between names.  0, or -EINVAL and a message. */
int user_stages__read(struct user_stages *u, const char *text, char *err,
		      size_t len);
/*
 * Find them in the type information of the kernel or of a loaded module.  0, or
 * -EOPNOTSUPP and a message: there is none, or it has no struct sk_buff *.
 */
int user_stages__find(struct user_stages *u, char *err, size_t len);
/* Enter them in the profile's table of stages. */
void user_stages__fill(const struct user_stages *u, struct profile *p);

#endif
