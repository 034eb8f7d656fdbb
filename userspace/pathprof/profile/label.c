// SPDX-License-Identifier: GPL-2.0-only
/*
 * Labels of paths.  Paths of the same words form a set.  What all of a set have
 * in common is left out; what some of them have is printed.  The reason for the
 * slow path is always printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/tool.h"
#include "profile/explain.h"
#include "profile/label.h"

void path__words(const struct profile *p, const struct profile_path *path,
		   char *out, size_t size)
{
	char clean[64];
	const struct path_key *k = &path->key;
	uint32_t f = k->flags;
	bool rx = k->dir == DIR_RX;

	snprintf(out, size, "%s%s%s%s%s%s%s%s%s%s%s%s",
		 rx ? "rx" : "tx",
		 k->family == 6 ? "6" : "",
		 !rx ? "" : f & PF_FAST ? " fast" : f & PF_SLOW ? " slow" : "",
		 f & PF_ICMP ? " icmp" :
		 f & PF_DATA ? " data" : f & (PF_SYN | PF_FIN | PF_RST) ? "" :
		 " ack",
		 f & PF_SYN ? " syn" : "", f & PF_FIN ? " fin" : "",
		 f & PF_RST ? " rst" : "",
		 f & PF_OOO ? " ooo" : "",
		 f & PF_BACKLOG ? " backlog" : "",
		 f & PF_GRO_MERGED ? " gro" : "",
		 f & PF_RETRANS ? " retrans" : "",
		 f & PF_CUT ? " cut" : "");
	size -= strlen(out);
	out += strlen(out);
	switch (k->end) {
	case END_DELIVERED:
	case END_CONSUMED:
	case END_SENT:
		break;
	case END_DROPPED:
		if (*profile__reason(p, k->reason))
			snprintf(out, size, " drop:%s",
				 printable(profile__reason(p, k->reason), clean,
					   sizeof(clean)));
		else
			snprintf(out, size, " drop:%u", k->reason);
		break;
	default:
		snprintf(out, size, " %s", end_name(k->end));
	}
}

/* Flags that path__words() does not print, and that make a difference. */
#define FLAGS	(PF_SUPER | PF_PROBE | PF_UDP)

/* A bit for each stage. */
typedef unsigned __int128 stage_set_t;

_Static_assert(PATHPROF_STAGE_MAX <= 128, "stages in a set");

struct common {
	uint32_t facts, flags;
	stage_set_t stages;
	bool stages_differ;	/* with nothing else that does */
};

static stage_set_t stage_set(const struct path_key *k)
{
	stage_set_t set = 0;
	unsigned int i;

	for (i = 0; i < k->n && i < PATH_STAGES; i++)
		if (k->stages[i] < PATHPROF_STAGE_MAX)
			set |= (stage_set_t)1 << k->stages[i];
	return set;
}

static size_t same_words(const size_t *order, size_t n,
			 label_text *words)
{
	size_t i;

	for (i = 1; i < n && !strcmp(words[order[0]], words[order[i]]); i++)
		;
	return i;
}

static struct common in_common(const struct profile *p, const size_t *order,
			       size_t n)
{
	struct common c = { ~0U, ~0U, ~(stage_set_t)0, false };
	const struct path_key *k;
	size_t i;

	for (i = 0; i < n; i++) {
		k = &p->paths[order[i]].key;
		c.facts &= explain__facts(k);
		c.flags &= k->flags;
		c.stages &= stage_set(k);
	}
	return c;
}

static void add(char *out, size_t *at, size_t before, const char *what)
{
	if (*at < LABEL)
		*at += snprintf(out + *at, LABEL - *at, "%s%s",
				*at == before ? " (" : ", ", what);
}

static bool is_reason(const struct path_key *k, unsigned int bit)
{
	return k->flags & PF_SLOW && k->flags & PF_DATA &&
	       !strcmp(fact_branch(bit), "prediction");
}

static void add_details(const struct profile *p, const struct path_key *k,
			const struct common *c, char *out)
{
	uint32_t facts = explain__facts(k), flags = k->flags & FLAGS & ~c->flags;
	size_t before = strlen(out), at = before;
	stage_set_t stages = stage_set(k) & ~c->stages;
	char clean[32], via[48];
	unsigned int i, nvia = 0;

	for (i = 0; i < 32; i++)
		if (facts >> i & 1 && fact_name(i) &&
		    (!(c->facts >> i & 1) || is_reason(k, i)))
			add(out, &at, before, fact_name(i));
	for (i = 0; i < 32; i++)
		if (flags >> i & 1 && flag_name(i))
			add(out, &at, before, flag_name(i));
	for (i = 0; c->stages_differ && i < PATHPROF_STAGE_MAX; i++) {
		if (!(stages >> i & 1))
			continue;
		snprintf(via, sizeof(via), "%s%s", nvia++ ? "" : "via ",
			 printable(p->stages[i].name, clean, sizeof(clean)));
		add(out, &at, before, via);
	}
	if (at > before && at < LABEL - 1)
		strcpy(out + at, ")");
}

/* Are two paths of a set alike but for their stages? */
static bool need_stages(const struct profile *p, const size_t *order, size_t n)
{
	const struct path_key *a, *b;
	size_t i, j;

	for (i = 0; i < n; i++) {
		a = &p->paths[order[i]].key;
		for (j = 0; j < i; j++) {
			b = &p->paths[order[j]].key;
			if (explain__facts(a) == explain__facts(b) &&
			    !((a->flags ^ b->flags) & FLAGS) &&
			    stage_set(a) != stage_set(b))
				return true;
		}
	}
	return false;
}

static int by_words(const void *a, const void *b, void *words)
{
	label_text *w = words;

	return strcmp(w[*(const size_t *)a], w[*(const size_t *)b]);
}

label_text *labels(const struct profile *p, bool stages)
{
	label_text *out = calloc(p->npaths + 1, sizeof(*out));
	size_t *order = calloc(p->npaths + 1, sizeof(*order));
	size_t i, j, n;
	struct common c;

	if (!out || !order) {
		free(out);
		free(order);
		return NULL;
	}
	for (i = 0; i < p->npaths; i++) {
		order[i] = i;
		path__words(p, &p->paths[i], out[i], LABEL);
	}
	qsort_r(order, p->npaths, sizeof(*order), by_words, out);
	for (i = 0; i < p->npaths; i += n) {
		n = same_words(order + i, p->npaths - i, out);
		c = in_common(p, order + i, n);
		c.stages_differ = stages && need_stages(p, order + i, n);
		for (j = i; j < i + n; j++)
			add_details(p, &p->paths[order[j]].key, &c,
				    out[order[j]]);
	}
	free(order);
	return out;
}
