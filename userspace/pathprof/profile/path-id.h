/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A name for a path that stays the same in every recording: a hash of its
 * description in words, so that neither the order of paths nor the numbers that
 * a kernel gives to drop reasons matter (profile-format.rst, PATH IDS).
 */
#ifndef PATHPROF_PATH_ID_H
#define PATHPROF_PATH_ID_H

#include "profile/profile.h"

#define PATH_ID	17		/* 16 hexadecimal digits and the end */

const char *path__id(const struct profile *p, const struct path_key *key,
		     char out[PATH_ID]);

#endif
