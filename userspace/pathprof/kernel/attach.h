/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hooks of a session: which the kernel has, which are wanted, and their
 * programs attached and detached.
 */
#ifndef PATHPROF_ATTACH_H
#define PATHPROF_ATTACH_H

#include <bpf/libbpf.h>
#include "kernel/drops.h"
#include "kernel/hooks.h"
#include "kernel/user-stages.h"
#include "profile/profile.h"

struct attachments {
	struct bpf_program *programs[PROFILE_HOOKS];
	int links[PROFILE_HOOKS];	/* 0: not attached */
	struct profile_hook hooks[PROFILE_HOOKS];
	struct hook_place places[PROFILE_HOOKS];
	uint32_t targets[PROFILE_HOOKS];	/* program hooked; 0: none */
	size_t n;
};

/* Why a hook was refused, in the order of attachments; "" if it was not. */
struct refusals {
	char why[PROFILE_HOOKS][64];
};

/* Decides which hooks are wanted. */
struct attach_choice {
	bool bursts;		/* attached in sampling bursts only */
	bool fine, udp, nat;
	unsigned int groups;	/* of --stages; 0: not asked for */
	bool exits;		/* the returns of TCP's functions are hooked */
};

/* Before an object is opened that will be loaded. */
void attach__register(void);
/*
 * List the programs of an object that is open, and find their hooks in this
 * kernel; functions and drops as for hooks__find().  0 or a negative errno.
 */
int attach__find(struct attachments *a, struct bpf_object *obj, bool functions,
		 const struct user_stages *users, struct drops *drops,
		 char *err, size_t len);
/*
 * After attach__choose(): is there what was asked for by name, the functions of
 * --stage and, for --nat, connection tracking?  0, or -EOPNOTSUPP and why not.
 */
int attach__check(const struct attachments *a, bool nat, char *err, size_t len);
/* Are the functions of --stage in this state at least? */
int attach__users(const struct attachments *a, enum hook_state state,
		  char *err, size_t len);
/* Are functions left alone that are hooked (kernel.ftrace_enabled)? */
bool attach__ftrace_off(void);
/*
 * The hooks of functions, or only those whose attachment failed, become FAILED
 * in `refused` as well, so that a second try does without them.  How many of
 * these decide what the programs do: with one missing, they must be loaded anew.
 */
unsigned int attach__refuse(struct attachments *a, struct refusals *refused,
			    const char *why);
/* After attach__find(): leave out what was refused before. */
void attach__leave_out(struct attachments *a, const struct refusals *refused);
/* Print which hooks the session does without. */
void attach__report(const struct attachments *a,
		    const struct refusals *refused);
/* Does the kernel have this hook? */
bool attach__has(const struct attachments *a, const char *name);
/*
 * Say which programs are to be loaded; before it is loaded.  Functions of
 * modules that this user may not hook become FAILED: one of them would make the
 * whole object fail.
 */
void attach__choose(struct attachments *a, const struct attach_choice *choice);
/* Around the loading of the object: libbpf takes places from a; then NULL. */
void attach__loading(const struct attachments *a);
/* Attach what was loaded; how many hooks that were. */
int attach__all(struct attachments *a);
void attach__none(struct attachments *a);
/* How many of these hooks, a list that NULL ends, are attached right now. */
unsigned int attach__count(const struct attachments *a,
			   const char *const *names);
/* How often the kernel skipped a program that interrupted itself. */
void attach__read_misses(struct attachments *a);

#endif
