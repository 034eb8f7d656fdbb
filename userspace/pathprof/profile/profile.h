/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A profile in memory: what one recording learned.  Commands and views work
 * on this; read.c and write.c alone know it as a file.
 */
#ifndef PATHPROF_PROFILE_H
#define PATHPROF_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <linux/types.h>
#include "pathprof.h"

#define PROFILE_FORMAT	"pathprof-profile"
#define PROFILE_VERSION	4
#define PROFILE_PATHS	(PATH_PATHS * 2)	/* merged ones may have more */
#define PROFILE_HOOKS	192
#define PROFILE_REASONS	256	/* of the kernel's, 130 in 2026, and of modules */
#define PROFILE_LOCATIONS 256	/* functions that drop packets */

struct profile_stage {
	char name[48];		/* one of --stage: the function's */
	char meaning[64];
	char hooks[160];
	uint8_t dir;
	uint8_t kind;
	uint16_t order;
	bool known;		/* the table has this id */
	bool available;		/* the kernel has a hook for it */
};

enum hook_state { HOOK_ATTACHED, HOOK_PRESENT, HOOK_MISSING, HOOK_FAILED };

struct profile_hook {
	char name[48];
	char type[8];		/* fentry, fexit, tp_btf */
	char why[64];		/* if missing or failed */
	enum hook_state state;
	uint64_t missed;	/* recursion_misses */
};

/*
 * A drop reason of the kernel's: the upper 16 bits are the subsystem, 0 the
 * kernel's own.  "openvswitch.last_action" is one of a subsystem.
 */
struct profile_reason {
	uint32_t number;
	char name[64];
};

struct profile_path {
	struct path_key key;
	struct path_value sum;
	uint64_t probe_ns[PATH_STAGES];	/* of stage_ns, pathprof's own */
	struct path_state state;	/* its packets: 0 if it was not kept */
};

/* Packets of one place; names are "" where they are not known. */
struct profile_group {
	struct group_key key;
	struct group_value sum;	/* as measured */
	char device[48], netns[48], cgroup[128];
};

/* The cost of pathprof's own work, measured before the recording; ns. */
struct profile_probe {
	uint64_t event;		/* to a tracepoint's program and back */
	uint64_t function;	/* to that of a function; 0: none attached */
	uint64_t head, tail, claim, clock;	/* struct probe_costs */
};

#define PROBE_COSTS(COST) \
	COST(event) COST(function) COST(head) COST(tail) COST(claim) COST(clock)

#define PROFILE_FILTER	640

struct profile {
	char tool_version[32];
	char release[80];
	char machine[32];
	char started[40];
	char *command;		/* as typed, blanks between words; or NULL */
	int command_status;
	uint64_t duration_ns;
	uint64_t probe_ns;	/* program of one followed stage; 0: not known */
	struct profile_probe probe;
	bool probe_known;	/* the paths' probe_ns are filled in */
	bool subtracted;	/* they are off the times */
	uint64_t open_ns;	/* of duration_ns, in which packets were chosen */
	uint32_t sample;
	uint32_t budget_ppm;	/* CPU share allowed to bursts; 0: no bursts */
	/* The same command's run without pathprof; 0: none was made. */
	uint64_t load_ns, load_packets, load_bytes;
	uint16_t port;
	char addr[56];		/* ADDR/BITS; "" if not filtered */
	char filter[PROFILE_FILTER];	/* by anything else, in words */
	bool udp, icmp, fine;	/* these were followed, too; finer stages */
	uint64_t ends[PATHPROF_END_MAX];
	uint64_t counters[PATHPROF_COUNTER_MAX];
	uint64_t followed;	/* still so when it ended */
	struct profile_stage stages[PATHPROF_STAGE_MAX];
	/* Packets by their time in a stage as measured; all 0: not kept. */
	uint64_t stage_hist[PATHPROF_STAGE_MAX][HIST_BUCKETS];
	struct profile_hook hooks[PROFILE_HOOKS];
	size_t nhooks;
	struct profile_reason reasons[PROFILE_REASONS];
	size_t nreasons;
	/*
	 * Functions that dropped a packet, with --drop-stacks each with its callers:
	 * "function < caller < caller".  Entry 0 is "", not known.
	 */
	char locations[PROFILE_LOCATIONS][320];
	size_t nlocations;
	struct profile_path *paths;
	size_t npaths;
	/* Of a recording that goes on; no part of files. */
	struct profile_group *groups;
	size_t ngroups;
	struct group_value *cpus;	/* by the CPU of a packet's end */
	size_t ncpus;
};

/*
 * A packet that this host received: the path of one that --stages followed from
 * its sender ends at the receiver as well.
 */
static inline bool path_is_rx(const struct path_key *k)
{
	return k->dir == DIR_RX || k->flags & PF_EST;
}

struct profile_totals {
	uint64_t packets, bytes, work_ns;
	uint64_t done;		/* came to an end of their own */
	uint64_t dropped;
	uint64_t lost;		/* by the profiler */
	uint64_t missed;	/* hook hits the kernel skipped */
	uint64_t fast_data, data;	/* received, established */
	int64_t unaccounted;
};

const char *state_name(unsigned int state);
const char *state_meaning(unsigned int state);
const char *end_name(unsigned int end);
/*
 * The same as files and exports spell it: their formats call a packet that is
 * still followed "in flight", and formats do not change.
 */
const char *end_word(unsigned int end);
const char *flag_name(unsigned int bit);	/* NULL if unused */
const char *fact_name(unsigned int bit);
const char *fact_branch(unsigned int bit);
const char *fact_meaning(unsigned int bit);
const char *counter_name(unsigned int id);
const char *counter_meaning(unsigned int id);
const char *category_name(unsigned int category);
const char *dir_name(unsigned int dir);
const char *kind_name(unsigned int kind);
const char *hook_state_name(unsigned int state);
bool counter_is_loss(unsigned int id);

/* A drop reason's name; "" if not known. */
const char *profile__reason(const struct profile *p, uint32_t number);
/* The entry of a reason, added if new; NULL if there is no room. */
struct profile_reason *profile__add_reason(struct profile *p,
					   uint32_t number);
/* The function that dropped a path's packets; "" if not known. */
const char *profile__location(const struct profile *p,
			      const struct path_key *key);
/* The entry of a function's name, added if new; 0 if there is no room. */
uint64_t profile__add_location(struct profile *p, const char *name);

/* Fill the stage table of this build. */
void profile__init(struct profile *p);
void profile__free(struct profile *p);
/* The stage at a place of a path; that of id 0, which is none, if wrong. */
const struct profile_stage *profile__stage(const struct profile *p,
					   const struct path_key *key,
					   unsigned int at);
/* The entry of a path, added if new; NULL without memory. */
struct profile_path *profile__path(struct profile *p,
				   const struct path_key *key);
/* Time by category of stage; PATHPROF_CATEGORY_MAX of them. */
void profile__categories(const struct profile *p, uint64_t *ns);
void profile__totals(const struct profile *p, struct profile_totals *t);
/*
 * Take pathprof's own cost off all times, never below zero: the one place that
 * does it.  Nothing happens where it is not known.
 */
void profile__subtract(struct profile *p);
/* new - old into out, which takes over nothing of either. */
int profile__diff(const struct profile *new, const struct profile *old,
		  struct profile *out);

/*
 * Can all its sums be counted (63 bits, as a file's numbers)?  So views need
 * not ask.  False, too, of more paths than a file may have.
 */
bool profile__fits(const struct profile *p);
/* Recorded with the same choice of packets, sampling apart? */
bool profile__same_filter(const struct profile *a, const struct profile *b);
/* Add the states of other packets to those of a path. */
void profile__add_state(struct path_state *to, const struct path_state *from);
/*
 * Add a profile to another.  -EINVAL: recorded with another sample, so that
 * packets do not weigh the same; -EXDEV: with another filter, so that the sum
 * is of neither; -EOVERFLOW: the sum does not fit.
 */
int profile__merge(struct profile *to, const struct profile *from);

/* Files.  Both return 0, or a negative errno and the reason in err. */
int profile__write(const struct profile *p, const char *path,
		   char *err, size_t len);
int profile__read(struct profile *p, const char *path, char *err, size_t len);
/* The same for a view: without pathprof's own cost, unless raw. */
int profile__view(struct profile *p, const char *path, bool raw, char *err,
		  size_t len);
/* The object of such a file, and back. */
struct json_t *profile__to_json(const struct profile *p);
int profile__from_json(struct profile *p, const struct json_t *root, char *err,
		       size_t len);

#endif
