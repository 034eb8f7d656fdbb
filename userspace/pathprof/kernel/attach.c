// SPDX-License-Identifier: GPL-2.0-only
/*
 * Chooses, attaches and detaches the hooks.  A hook that the kernel lacks is
 * switched off before loading, so that one missing function costs its stage and
 * not the session.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include "kernel/attach.h"
#include "kernel/modules.h"
#include "kernel/programs.h"
#include "kernel/stage-groups.h"

static bool is_event(const struct profile_hook *hook)
{
	return !strcmp(hook->type, "tp_btf");
}

static bool listed(const char *const *list, const char *name)
{
	for (; *list; list++)
		if (!strcmp(*list, name))
			return true;
	return false;
}

/* Which of several targets a hook is for: the number that ends its name. */
static size_t number_of(const struct bpf_program *prog)
{
	return strtoul(strrchr(bpf_program__name(prog), '_') + 1, NULL, 10);
}

/* The program of tc that a hook is for; NULL if there are not so many. */
static const struct program *program_of(const struct bpf_program *prog,
					const struct program *found, size_t n)
{
	size_t i = number_of(prog);

	return i < n ? &found[i] : NULL;
}

/* A hook of --stage? */
static bool is_user(const struct attachments *a, size_t i)
{
	return !strncmp(bpf_program__name(a->programs[i]), "stack_user_", 11);
}

static void take_program(struct attachments *a, size_t i,
			 const struct program *target)
{
	a->hooks[i].state = HOOK_PRESENT;
	snprintf(a->hooks[i].why, sizeof(a->hooks[i].why), "program %s, id %u",
		 target->name, target->id);
	a->places[i].id = target->function;
}

int attach__find(struct attachments *a, struct bpf_object *obj, bool functions,
		 const struct user_stages *users, struct drops *drops,
		 char *err, size_t len)
{
	struct program found[PROGRAMS_MAX];
	size_t i, n = functions ? programs__find(found, PROGRAMS_MAX) : 0;
	const struct program *target;
	struct bpf_program *prog;
	struct profile_hook *hook;
	const char *sec, *slash, *name;
	int rc;

	bpf_object__for_each_program(prog, obj) {
		sec = bpf_program__section_name(prog);
		slash = strchr(sec, '/');
		/* Only the sections of hooks name a function. */
		if (!slash || a->n == PROFILE_HOOKS)
			continue;
		target = NULL;
		name = slash + 1;
		if (!strcmp(name, "user_function")) {
			if (number_of(prog) >= users->n)
				continue;
			name = users->functions[number_of(prog)];
		}
		if (!strcmp(name, "tc_program")) {
			target = program_of(prog, found, n);
			if (!target)
				continue;
			a->targets[a->n] = target->id;
		}
		hook = &a->hooks[a->n];
		a->programs[a->n++] = prog;
		snprintf(hook->name, sizeof(hook->name), "%s", name);
		sec += *sec == '?';
		snprintf(hook->type, sizeof(hook->type), "%.*s",
			 (int)(slash - sec), sec);
	}
	rc = hooks__find(a->hooks, a->n, a->places, functions, drops,
			 err, len);
	for (i = 0; !rc && i < a->n; i++)
		if (a->targets[i])
			take_program(a, i, program_of(a->programs[i], found,
						      n));
	return rc;
}

bool attach__ftrace_off(void)
{
	FILE *f = fopen("/proc/sys/kernel/ftrace_enabled", "re");
	bool off = f && getc(f) == '0';

	if (f)
		fclose(f);
	return off;
}

int attach__check(const struct attachments *a, bool nat, char *err, size_t len)
{
	size_t i;

	for (i = 0; nat && i < a->n; i++) {
		if (strcmp(a->hooks[i].name, "nf_conntrack_in") ||
		    a->hooks[i].state <= HOOK_PRESENT)
			continue;
		snprintf(err, len, "--nat: connections cannot be tracked: %s",
			 a->hooks[i].why);
		return -EOPNOTSUPP;
	}
	return attach__users(a, HOOK_PRESENT, err, len);
}

int attach__users(const struct attachments *a, enum hook_state state,
		  char *err, size_t len)
{
	size_t i;

	for (i = 0; i < a->n; i++) {
		if (!is_user(a, i) || a->hooks[i].state <= state)
			continue;
		snprintf(err, len, "--stage %s: the function cannot be hooked: "
			 "%s", a->hooks[i].name, a->hooks[i].why);
		return -EOPNOTSUPP;
	}
	return 0;
}

unsigned int attach__refuse(struct attachments *a, struct refusals *refused,
			    const char *why)
{
	/* Whether these are hooked is in the configuration of the programs. */
	static const char *const deciding[] = {
		"tcp_rcv_established", "tcp_rcv_state_process",
		"tcp_add_backlog", "tcp_make_synack", "__tcp_transmit_skb",
		NULL
	};
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < a->n; i++) {
		if (is_event(&a->hooks[i]) ||
		    !bpf_program__autoload(a->programs[i]) ||
		    (!why && a->hooks[i].state != HOOK_FAILED))
			continue;
		snprintf(refused->why[i], sizeof(refused->why[i]), "%s",
			 why ? why : a->hooks[i].why);
		n += listed(deciding, a->hooks[i].name);
	}
	return n;
}

void attach__leave_out(struct attachments *a, const struct refusals *refused)
{
	size_t i;

	for (i = 0; i < a->n; i++) {
		if (!*refused->why[i])
			continue;
		a->hooks[i].state = HOOK_FAILED;
		memcpy(a->hooks[i].why, refused->why[i],
		       sizeof(a->hooks[i].why));
	}
}

void attach__report(const struct attachments *a,
		    const struct refusals *refused)
{
	const char *why = NULL, *last = "";
	size_t i;

	for (i = 0; i < a->n; i++) {
		if (*refused->why[i]) {
			why = why ? why : refused->why[i];
			continue;
		}
		/* The entry and the return of a function are two hooks. */
		if (a->hooks[i].state != HOOK_FAILED ||
		    !strcmp(a->hooks[i].name, last))
			continue;
		last = a->hooks[i].name;
		fprintf(stderr, "pathprof: %s() is not hooked: %s\n", last,
			a->hooks[i].why);
	}
	if (why)
		fprintf(stderr, "pathprof: functions cannot be hooked here "
			"(%s): fewer stages are seen\n", why);
}

bool attach__has(const struct attachments *a, const char *name)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		if (!strcmp(a->hooks[i].name, name))
			return a->hooks[i].state <= HOOK_PRESENT;
	return false;
}

/* One of those in stack-hooks.bpf.h? */
static bool is_stack(const struct attachments *a, size_t i)
{
	return !strncmp(bpf_program__name(a->programs[i]), "stack_", 6);
}

/* Has a hook another program, for --stages? */
static bool has_stack(const struct attachments *a, const char *name)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		if (is_stack(a, i) && !is_user(a, i) &&
		    !strcmp(a->hooks[i].name, name))
			return true;
	return false;
}

/*
 * In sampling bursts only tracepoints are attached: one takes 0.04 ms to
 * attach and detach, a function 70 ms and a grace period.
 */
static bool wanted(const struct attachments *a, size_t i,
		   const struct attach_choice *choice)
{
	static const char *const coarse[] = {
		"tcp_add_backlog", "tcp_rcv_established",
		"tcp_rcv_state_process", "kfree_skb_partial",
		"tcp_sendmsg_locked", "__tcp_transmit_skb",
		"tcp_timewait_state_process", "tcp_make_synack",
		"tcp_check_req", NULL
	};
	/* Finer stages that groups of --stages have as well. */
	static const char *const shared[] = {
		"ip_rcv_core", "ip6_rcv_core", "ip_local_deliver",
		"ip6_input", NULL
	};
	const struct profile_hook *hook = &a->hooks[i];
	bool icmp = stage_groups__icmp(choice->groups);

	if (hook->state != HOOK_PRESENT)
		return false;
	if (is_user(a, i))
		return true;
	if (!strncmp(bpf_program__name(a->programs[i]), "stack_nat_", 10))
		return choice->nat;
	if (is_stack(a, i))
		return stage_groups__want(choice->groups, choice->udp,
					  hook->name) &&
		       (choice->udp || strcmp(hook->name, "skb_consume_udp"));
	if (choice->groups && has_stack(a, hook->name))
		return false;
	if (!strcmp(hook->name, "softirq_exit"))
		return choice->udp || icmp || !choice->exits;
	if (!strcmp(hook->name, "sock_def_readable") &&
	    attach__has(a, "sk_data_ready"))
		return false;
	if (is_event(hook))
		return true;
	if (!strcmp(hook->name, "skb_consume_udp"))
		return choice->udp && !choice->bursts;
	if (!strcmp(hook->name, "sk_filter_trim_cap") && (choice->udp || icmp))
		return !choice->bursts;
	return !choice->bursts &&
	       (choice->fine || listed(coarse, hook->name) ||
		(listed(shared, hook->name) &&
		 stage_groups__want(choice->groups, choice->udp, hook->name)));
}

/* Of the last module asked for: functions of one stand together. */
static struct {
	const char *module;
	int fd;
} of_module = { .fd = -1 };

static int module_btf(const char *module)
{
	if (of_module.module && !strcmp(of_module.module, module))
		return of_module.fd;
	if (of_module.fd >= 0)
		close(of_module.fd);
	of_module.module = module;
	of_module.fd = module ? modules__btf(module) : -1;
	return of_module.fd;
}

/* May this user hook the function, as far as that depends on its module? */
static bool may_hook(struct attachments *a, size_t i)
{
	const char *module = a->places[i].module;
	struct profile_hook *hook = &a->hooks[i];
	int fd = module ? module_btf(module) : 0;

	if (fd >= 0)
		return true;
	hook->state = HOOK_FAILED;
	if (fd == -EPERM)
		snprintf(hook->why, sizeof(hook->why),
			 "functions of module %.24s need CAP_SYS_ADMIN",
			 module);
	else
		snprintf(hook->why, sizeof(hook->why), "module %.24s: %.24s",
			 module, strerror(-fd));
	return false;
}

void attach__choose(struct attachments *a, const struct attach_choice *choice)
{
	size_t i;

	for (i = 0; i < a->n; i++)
		bpf_program__set_autoload(a->programs[i],
					  wanted(a, i, choice) &&
					  may_hook(a, i));
}

/*
 * libbpf would search all types for each program's hook; we know them.  Its
 * callback gets no argument but the program.
 */
static const struct attachments *loading;

/* Of the last program asked for: its two hooks stand together. */
static struct {
	uint32_t id;
	int fd;
} of_program = { .fd = -1 };

static int target_program(uint32_t id)
{
	if (of_program.id == id)
		return of_program.fd;
	if (of_program.fd >= 0)
		close(of_program.fd);
	of_program.id = id;
	of_program.fd = id ? bpf_prog_get_fd_by_id(id) : -1;
	return of_program.fd;
}

static int set_target(struct bpf_program *prog,
		      struct bpf_prog_load_opts *opts, long cookie)
{
	size_t i;

	(void)cookie;
	for (i = 0; loading && i < loading->n; i++) {
		if (loading->programs[i] != prog)
			continue;
		opts->attach_btf_id = loading->places[i].id;
		if (loading->targets[i])
			opts->attach_prog_fd =
				target_program(loading->targets[i]);
		else if (loading->places[i].module)
			opts->attach_btf_obj_fd =
				module_btf(loading->places[i].module);
	}
	return 0;
}

void attach__register(void)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, opts,
		    .prog_prepare_load_fn = set_target);
	static bool done;

	if (done)
		return;
	done = true;
	/* If one fails, libbpf's own handler searches: slower, same result. */
	libbpf_register_prog_handler("fentry+", BPF_PROG_TYPE_TRACING,
				     BPF_TRACE_FENTRY, &opts);
	libbpf_register_prog_handler("fexit+", BPF_PROG_TYPE_TRACING,
				     BPF_TRACE_FEXIT, &opts);
	libbpf_register_prog_handler("tp_btf+", BPF_PROG_TYPE_TRACING,
				     BPF_TRACE_RAW_TP, &opts);
}

void attach__loading(const struct attachments *a)
{
	loading = a;
	if (!a)
		target_program(0);
	if (!a && of_module.fd >= 0) {
		close(of_module.fd);
		of_module.fd = -1;
	}
	of_module.module = NULL;
}

int attach__all(struct attachments *a)
{
	struct profile_hook *hook;
	int attached = 0;
	size_t i;

	for (i = 0; i < a->n; i++) {
		hook = &a->hooks[i];
		if (!bpf_program__autoload(a->programs[i]) ||
		    hook->state == HOOK_FAILED)
			continue;
		/* Serves all three types; there is no name to give. */
		a->links[i] = bpf_raw_tracepoint_open(NULL,
				bpf_program__fd(a->programs[i]));
		if (a->links[i] < 0) {
			a->links[i] = 0;
			hook->state = HOOK_FAILED;
			snprintf(hook->why, sizeof(hook->why),
				 "attach: %s", strerror(errno));
			continue;
		}
		hook->state = HOOK_ATTACHED;
		attached++;
	}
	return attached;
}

void attach__none(struct attachments *a)
{
	size_t i;

	for (i = 0; i < a->n; i++) {
		if (a->links[i] > 0)
			close(a->links[i]);
		a->links[i] = 0;
	}
}

unsigned int attach__count(const struct attachments *a,
			   const char *const *names)
{
	unsigned int n = 0;
	size_t i;

	for (i = 0; i < a->n; i++)
		n += a->links[i] && listed(names, a->hooks[i].name);
	return n;
}

void attach__read_misses(struct attachments *a)
{
	struct bpf_prog_info info;
	uint32_t len;
	size_t i;

	for (i = 0; i < a->n; i++) {
		if (a->hooks[i].state != HOOK_ATTACHED)
			continue;
		memset(&info, 0, sizeof(info));
		len = sizeof(info);
		if (!bpf_obj_get_info_by_fd(bpf_program__fd(a->programs[i]),
					    &info, &len))
			a->hooks[i].missed = info.recursion_misses;
		if (getenv("PATHPROF_DEBUG"))
			fprintf(stderr, "%s: %u instructions verified\n",
				a->hooks[i].name, info.verified_insns);
	}
}
