/* SPDX-License-Identifier: GPL-2.0-only */
/* What to call paths in a table, so that two rows differ as the paths do. */
#ifndef PATHPROF_LABEL_H
#define PATHPROF_LABEL_H

#include "profile/profile.h"

/* Words such as "rx fast data"; PATH_WORDS bytes hold any of them. */
#define PATH_WORDS	112
void path__words(const struct profile *p, const struct profile_path *path,
		 char *out, size_t size);

#define LABEL	320

typedef char label_text[LABEL];

/*
 * A label for each path: its words, then in parentheses what makes it differ
 * from paths of the same words: facts, flags and, unless the table has a list
 * of stages, those.  To be freed; NULL without memory.
 */
label_text *labels(const struct profile *p, bool stages);

#endif
