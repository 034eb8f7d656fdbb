// SPDX-License-Identifier: GPL-2.0
/*
 * Loads and attaches the BPF programs and reads their maps.  Hooks the kernel
 * lacks are switched off before loading, by its type information and symbol
 * table; whatever remains is recorded in the profile by name.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/membarrier.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include "attach.h"
#include "pathprof.skel.h"

#define BTF_PATH "/sys/kernel/btf/vmlinux"

struct session {
	struct pathprof_bpf *skel;
	struct bpf_link *links[PROFILE_HOOKS];
	struct bpf_program *programs[PROFILE_HOOKS];
	struct profile_hook hooks[PROFILE_HOOKS];
	int ids[PROFILE_HOOKS];		/* BTF id of each hook */
	size_t nhooks;
	char reasons[PROFILE_REASONS][32];
	struct session_config config;
	uint64_t start_ns, stop_ns;
	char started[40];
	bool stopped;
};

/* libbpf's own messages would bury ours; keep the last one for the reason. */
static char libbpf_last[256];

static int keep_message(enum libbpf_print_level level, const char *format,
			va_list args)
{
	va_list copy;

	va_copy(copy, args);
	if (level == LIBBPF_WARN)
		vsnprintf(libbpf_last, sizeof(libbpf_last), format, copy);
	va_end(copy);
	if (getenv("PATHPROF_DEBUG"))
		vfprintf(stderr, format, args);
	return 0;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* What the kernel knows of the function or tracepoint of one hook. */
struct target {
	const char *name;
	int symbols;		/* of this name in the symbol table */
	int function, event;	/* BTF ids; 0: none */
};

static int by_name(const void *a, const void *b)
{
	const struct target *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static struct target *find_target(struct target *targets, size_t n,
				  const char *name)
{
	struct target key = { .name = name };

	return bsearch(&key, targets, n, sizeof(key), by_name);
}

/*
 * Count the names in the kernel's symbol table.  It has some 200000 lines,
 * "ADDRESS TYPE NAME [MODULE]", so most are left at their first letter.
 */
static int count_symbols(struct target *targets, size_t n)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	bool initial[256] = {};
	size_t size = 0, i;
	struct target *hit;
	char *line = NULL, *name;
	ssize_t len;

	if (!f)
		return -1;
	for (i = 0; i < n; i++)
		initial[(unsigned char)*targets[i].name] = true;
	while ((len = getline(&line, &size, f)) > 0) {
		name = line + 2 * sizeof(long) + 3;
		if (name >= line + len || !initial[(unsigned char)*name])
			continue;
		name[strcspn(name, "\t\n")] = 0;
		hit = find_target(targets, n, name);
		if (hit)
			hit->symbols++;
	}
	free(line);
	fclose(f);
	return 0;
}

static void split_section(const struct bpf_program *prog,
			  struct profile_hook *hook)
{
	const char *sec = bpf_program__section_name(prog);
	const char *slash = strchr(sec, '/');

	snprintf(hook->name, sizeof(hook->name), "%s", slash + 1);
	snprintf(hook->type, sizeof(hook->type), "%.*s", (int)(slash - sec),
		 sec);
}

static void find_hook(struct profile_hook *hook, const struct target *target)
{
	hook->state = HOOK_MISSING;
	if (!strcmp(hook->type, "tp_btf")) {
		if (!target->event)
			snprintf(hook->why, sizeof(hook->why),
				 "no such tracepoint");
		else
			hook->state = HOOK_PRESENT;
		return;
	}
	if (!target->function)
		snprintf(hook->why, sizeof(hook->why), "inlined or absent");
	else if (!target->symbols)
		snprintf(hook->why, sizeof(hook->why),
			 "only a changed copy has a symbol");
	else if (target->symbols > 1)
		snprintf(hook->why, sizeof(hook->why),
			 "%d symbols of this name", target->symbols);
	else
		hook->state = HOOK_PRESENT;
}

/* Drop reasons are an enum whose values change between kernels. */
static void read_reasons(struct session *s, const struct btf *btf,
			 const struct btf_type *type)
{
	const struct btf_enum *e = btf_enum(type);
	const char *name;
	char *c;
	int i;

	for (i = 0; i < btf_vlen(type); i++) {
		name = btf__name_by_offset(btf, e[i].name_off);
		if (!name || e[i].val < 0 || e[i].val >= PROFILE_REASONS)
			continue;
		if (!strncmp(name, "SKB_DROP_REASON_", 16))
			name += 16;
		c = s->reasons[e[i].val];
		snprintf(c, sizeof(s->reasons[0]), "%.31s", name);
		for (; *c; c++)
			*c = tolower((unsigned char)*c);
	}
}

/* One walk over the kernel's 150000 types instead of one per name. */
static void walk_types(struct session *s, const struct btf *btf,
		       struct target *targets)
{
	const struct btf_type *type;
	struct target *hit;
	const char *name;
	int id, n = btf__type_cnt(btf);

	for (id = 1; id < n; id++) {
		type = btf__type_by_id(btf, id);
		if (!btf_is_func(type) && !btf_is_typedef(type) &&
		    !btf_is_enum(type))
			continue;
		name = btf__name_by_offset(btf, type->name_off);
		if (btf_is_enum(type)) {
			if (!strcmp(name, "skb_drop_reason"))
				read_reasons(s, btf, type);
		} else if (btf_is_func(type)) {
			hit = find_target(targets, s->nhooks, name);
			if (hit && !hit->function)
				hit->function = id;
		} else if (!strncmp(name, "btf_trace_", 10)) {
			hit = find_target(targets, s->nhooks, name + 10);
			if (hit)
				hit->event = id;
		}
	}
}

/* Decide for every program whether this kernel has its hook. */
static int find_hooks(struct session *s, char *err, size_t len)
{
	struct target targets[PROFILE_HOOKS] = {}, *target;
	struct bpf_program *prog;
	bool no_symbols;
	struct btf *btf;
	size_t i, n = 0;

	btf = btf__parse(BTF_PATH, NULL);
	if (!btf) {
		snprintf(err, len, "cannot read kernel type information %s: "
			 "%s; a kernel with CONFIG_DEBUG_INFO_BTF is needed",
			 BTF_PATH, strerror(errno));
		return 3;
	}
	bpf_object__for_each_program(prog, s->skel->obj) {
		if (n == PROFILE_HOOKS)
			break;
		/* Only the hooks' sections name a function. */
		if (!strchr(bpf_program__section_name(prog), '/'))
			continue;
		s->programs[n] = prog;
		split_section(prog, &s->hooks[n]);
		targets[n].name = s->hooks[n].name;
		n++;
	}
	s->nhooks = n;
	qsort(targets, n, sizeof(*targets), by_name);
	no_symbols = count_symbols(targets, n) < 0;
	walk_types(s, btf, targets);
	btf__free(btf);
	for (i = 0; i < n; i++) {
		target = find_target(targets, n, s->hooks[i].name);
		if (no_symbols)
			target->symbols = 1;
		find_hook(&s->hooks[i], target);
		s->ids[i] = !strcmp(s->hooks[i].type, "tp_btf") ?
			    target->event : target->function;
	}
	return 0;
}

/*
 * libbpf would search all types for each program's hook; we know them.  It
 * asks while it loads, and passes nothing but the program.
 */
static struct session *loading;

static int set_target(struct bpf_program *prog,
		      struct bpf_prog_load_opts *opts, long cookie)
{
	size_t i;

	(void)cookie;
	for (i = 0; loading && i < loading->nhooks; i++)
		if (loading->programs[i] == prog)
			opts->attach_btf_id = loading->ids[i];
	return 0;
}

static void register_handlers(void)
{
	LIBBPF_OPTS(libbpf_prog_handler_opts, opts,
		    .prog_prepare_load_fn = set_target);
	static bool done;

	if (done)
		return;
	done = true;
	/* Should one fail, libbpf's own handler searches: slower, as good. */
	libbpf_register_prog_handler("fentry+", BPF_PROG_TYPE_TRACING,
				     BPF_TRACE_FENTRY, &opts);
	libbpf_register_prog_handler("fexit+", BPF_PROG_TYPE_TRACING,
				     BPF_TRACE_FEXIT, &opts);
	libbpf_register_prog_handler("tp_btf+", BPF_PROG_TYPE_TRACING,
				     BPF_TRACE_RAW_TP, &opts);
}

/*
 * Quantiles of the geometric distribution with mean `sample`, one from each
 * of GAPS equally likely parts at a random place within the part.
 */
static void fill_gaps(uint32_t *gaps, unsigned int sample)
{
	double u, log_miss = log1p(-1.0 / sample);
	uint32_t random[GAPS];
	size_t i;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		memset(random, 0x80, sizeof(random));
	for (i = 0; i < GAPS; i++) {
		u = (i + (random[i] + 0.5) / 4294967296.0) / GAPS;
		gaps[i] = sample == 1 ? 1 :
			  1 + (uint32_t)floor(log1p(-u) / log_miss);
	}
}

static void set_config(struct pathprof_bpf *skel,
		       const struct session_config *config)
{
	struct pathprof_config *c = (void *)&skel->rodata->config;

	c->sample = config->sample;
	c->port = config->port;
	if (config->addr) {
		if (inet_pton(AF_INET, config->addr, c->addr) == 1)
			c->addr_family = 4;
		else if (inet_pton(AF_INET6, config->addr, c->addr) == 1)
			c->addr_family = 6;
	}
	fill_gaps((uint32_t *)skel->rodata->gaps, config->sample);
}

/* Does the kernel have the hook, and can the filter's packets meet it? */
static bool wanted(const struct session *s, size_t i)
{
	static const char *const v4[] = {
		"ip_rcv_core", "ip_local_deliver", "tcp_v4_rcv",
		"tcp_v4_do_rcv", "__ip_queue_xmit", "ip_output",
		"ip_finish_output2", NULL
	}, *const v6[] = {
		"ip6_rcv_core", "ip6_input", "tcp_v6_rcv", "tcp_v6_do_rcv",
		"inet6_csk_xmit", "ip6_output", "ip6_finish_output2", NULL
	};
	uint8_t family = s->skel->rodata->config.addr_family;
	const char *const *other = family == 4 ? v6 : family == 6 ? v4 : NULL;

	for (; other && *other; other++)
		if (!strcmp(s->hooks[i].name, *other))
			return false;
	return s->hooks[i].state == HOOK_PRESENT;
}

static int attach_all(struct session *s)
{
	struct profile_hook *hook;
	int attached = 0;
	size_t i;

	for (i = 0; i < s->nhooks; i++) {
		hook = &s->hooks[i];
		if (!bpf_program__autoload(s->programs[i]))
			continue;
		s->links[i] = bpf_program__attach_trace(s->programs[i]);
		if (!s->links[i]) {
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

static int load_failed(int rc, char *err, size_t len)
{
	if (rc == -EPERM) {
		snprintf(err, len, "the kernel refuses to load BPF programs "
			 "for this user (%s); run as root, and check that "
			 "BPF is not locked down", strerror(-rc));
		return 3;
	}
	libbpf_last[strcspn(libbpf_last, "\n")] = 0;
	snprintf(err, len, "the kernel did not take the BPF programs: %s (%s)",
		 strerror(-rc), libbpf_last);
	return 3;
}

/* Best effort: without it, the profile says 0. */
static void measure_probe(struct session *s)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts);

	bpf_prog_test_run_opts(bpf_program__fd(s->skel->progs.calibrate),
			       &opts);
}

int session__start(struct session **out, const struct session_config *config,
		   char *err, size_t len)
{
	struct session *s = calloc(1, sizeof(*s));
	time_t now = time(NULL);
	struct tm tm;
	int rc;
	size_t i;

	if (!s) {
		snprintf(err, len, "out of memory");
		return 1;
	}
	libbpf_set_print(keep_message);
	s->config = *config;
	if (geteuid()) {
		snprintf(err, len, "recording needs root (CAP_BPF and "
			 "CAP_PERFMON); run it with sudo");
		rc = 3;
		goto free;
	}
	register_handlers();
	s->skel = pathprof_bpf__open();
	if (!s->skel) {
		rc = load_failed(-errno, err, len);
		goto free;
	}
	rc = find_hooks(s, err, len);
	if (rc)
		goto free;
	set_config(s->skel, config);
	for (i = 0; i < s->nhooks; i++)
		bpf_program__set_autoload(s->programs[i], wanted(s, i));
	loading = s;
	rc = pathprof_bpf__load(s->skel);
	loading = NULL;
	if (rc) {
		rc = load_failed(rc, err, len);
		goto free;
	}
	measure_probe(s);
	if (!attach_all(s)) {
		snprintf(err, len, "no hook could be attached on this kernel; "
			 "`pathprof list` shows why");
		rc = 3;
		goto free;
	}
	gmtime_r(&now, &tm);
	strftime(s->started, sizeof(s->started), "%Y-%m-%dT%H:%M:%SZ", &tm);
	s->start_ns = now_ns();
	__atomic_store_n(&s->skel->bss->enabled, true, __ATOMIC_SEQ_CST);
	*out = s;
	return 0;
free:
	session__free(s);
	return rc;
}

void session__stop(struct session *s)
{
	struct timespec pause = { .tv_nsec = 10000000 };
	int64_t *active = (int64_t *)&s->skel->bss->flights_active;
	size_t i;

	if (s->stopped)
		return;
	s->stopped = true;
	/* No new packets; those under way get a moment to arrive. */
	__atomic_store_n(&s->skel->bss->enabled, false, __ATOMIC_SEQ_CST);
	s->stop_ns = now_ns();
	for (i = 0; i < 5 && __atomic_load_n(active, __ATOMIC_SEQ_CST); i++)
		nanosleep(&pause, NULL); /* poll: the table empties itself */
	/*
	 * Nobody may write from here on: what is read is final, although the
	 * hooks are still there.  Detaching takes the kernel a tenth of a
	 * second for each (an RCU-tasks grace period under one lock), one by
	 * one whatever we do, so it is left to session__free().  membarrier()
	 * waits for the programs that run right now.
	 */
	__atomic_store_n(active, FLIGHTS_FROZEN, __ATOMIC_SEQ_CST);
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		nanosleep(&pause, NULL); /* the kernel lacks it */
}

void session__free(struct session *s)
{
	size_t i;

	if (!s)
		return;
	for (i = 0; i < s->nhooks; i++)
		bpf_link__destroy(s->links[i]);
	pathprof_bpf__destroy(s->skel);
	free(s);
}

static void add_value(struct path_value *to, const struct path_value *from)
{
	uint64_t *a = (uint64_t *)to;
	const uint64_t *b = (const uint64_t *)from;
	size_t i;

	for (i = 0; i < sizeof(*to) / sizeof(*a); i++)
		a[i] += b[i];
}

static int read_paths(struct session *s, struct profile *p)
{
	int cpus = libbpf_num_possible_cpus(), cpu;
	struct bpf_map *map = s->skel->maps.paths;
	struct path_key key, next;
	struct profile_path *path;
	struct path_value *values;
	size_t size = sizeof(*values) * cpus;
	void *at = NULL;

	values = malloc(size);
	if (!values)
		return -ENOMEM;
	while (!bpf_map__get_next_key(map, at, &next, sizeof(next))) {
		key = next;
		at = &key;
		if (bpf_map__lookup_elem(map, &key, sizeof(key), values, size,
					 0))
			continue;
		path = profile__path(p, &key);
		if (!path) {
			free(values);
			return -ENOMEM;
		}
		for (cpu = 0; cpu < cpus; cpu++)
			add_value(&path->sum, &values[cpu]);
	}
	free(values);
	return 0;
}

/* One packet that did not arrive in time: its path as far as it came. */
static int add_flight(struct profile *p, struct flight *f)
{
	struct profile_path *path;
	unsigned int i;

	f->path.end = END_FLIGHT;
	path = profile__path(p, &f->path);
	if (!path)
		return -ENOMEM;
	path->sum.packets++;
	path->sum.segments += f->segments;
	path->sum.bytes += f->bytes;
	/* The last stage has no end yet and is not billed. */
	for (i = 0; i + 1 < f->path.n && i < PATH_STAGES; i++) {
		path->sum.stage_ns[i] += f->stage_ns[i];
		if (p->stages[f->path.stages[i] & 63].kind == KIND_WAIT)
			path->sum.wait_ns += f->stage_ns[i];
		else
			path->sum.work_ns += f->stage_ns[i];
	}
	path->sum.hist[0]++;
	return 0;
}

/* What was in flight when the table froze: only after session__stop(). */
static int read_flights(struct session *s, struct profile *p)
{
	struct bpf_map *map = s->skel->maps.flights;
	struct flight f;
	uint32_t i;

	for (i = 0; i < FLIGHTS; i++) {
		if (!s->skel->bss->flight_keys[i])
			continue;
		p->in_flight++;
		if (bpf_map__lookup_elem(map, &i, sizeof(i), &f, sizeof(f), 0))
			continue;
		if (add_flight(p, &f))
			return -ENOMEM;
	}
	for (i = 0; i < SOCKS; i++)
		p->in_flight += s->skel->bss->socks[i].pending;
	return 0;
}

static void read_counts(struct session *s, struct profile *p)
{
	int cpus = libbpf_num_possible_cpus(), cpu;
	struct bpf_map *map = s->skel->maps.counts;
	size_t n = PATHPROF_END_MAX + PATHPROF_COUNTER_MAX, i;
	uint64_t *values = calloc(cpus, n * sizeof(*values));
	uint32_t zero = 0;

	if (!values)
		return;
	if (!bpf_map__lookup_elem(map, &zero, sizeof(zero), values,
				  cpus * n * sizeof(*values), 0)) {
		for (cpu = 0; cpu < cpus; cpu++) {
			for (i = 0; i < PATHPROF_END_MAX; i++)
				p->ends[i] += values[cpu * n + i];
			for (i = 0; i < PATHPROF_COUNTER_MAX; i++)
				p->counters[i] +=
					values[cpu * n + PATHPROF_END_MAX + i];
		}
	}
	free(values);
}

/* The kernel skips a program that interrupts itself; it counts these. */
static void read_misses(struct session *s)
{
	struct bpf_prog_info info;
	uint32_t len;
	size_t i;

	for (i = 0; i < s->nhooks; i++) {
		if (s->hooks[i].state != HOOK_ATTACHED)
			continue;
		memset(&info, 0, sizeof(info));
		len = sizeof(info);
		if (!bpf_obj_get_info_by_fd(bpf_program__fd(s->programs[i]),
					    &info, &len))
			s->hooks[i].missed = info.recursion_misses;
		if (getenv("PATHPROF_DEBUG"))
			fprintf(stderr, "%s: %u instructions verified\n",
				s->hooks[i].name, info.verified_insns);
	}
}

static bool stage_has_hook(const struct profile *p, const char *hooks)
{
	char list[96], *word, *rest = list;
	size_t i;

	snprintf(list, sizeof(list), "%s", hooks);
	while ((word = strsep(&rest, " ")))
		for (i = 0; i < p->nhooks; i++)
			if (p->hooks[i].state <= HOOK_PRESENT &&
			    !strcmp(p->hooks[i].name, word))
				return true;
	return false;
}

static void describe_system(struct session *s, struct profile *p)
{
	struct utsname u;
	size_t i;

	uname(&u);
	snprintf(p->release, sizeof(p->release), "%s", u.release);
	snprintf(p->machine, sizeof(p->machine), "%.31s", u.machine);
	snprintf(p->tool_version, sizeof(p->tool_version), "%s", VERSION);
	memcpy(p->hooks, s->hooks, sizeof(p->hooks));
	memcpy(p->reasons, s->reasons, sizeof(p->reasons));
	p->nhooks = s->nhooks;
	for (i = 0; i < PATHPROF_STAGE_MAX; i++)
		if (p->stages[i].known)
			p->stages[i].available =
				stage_has_hook(p, p->stages[i].hooks);
}

int session__read(struct session *s, struct profile *p)
{
	int rc;

	read_misses(s);
	describe_system(s, p);
	p->probe_ns = s->skel->bss->probe_ns;
	p->sample = s->config.sample;
	p->port = s->config.port;
	snprintf(p->addr, sizeof(p->addr), "%s",
		 s->config.addr ? s->config.addr : "");
	snprintf(p->started, sizeof(p->started), "%s", s->started);
	p->duration_ns = (s->stopped ? s->stop_ns : now_ns()) - s->start_ns;
	read_counts(s, p);
	rc = read_paths(s, p);
	if (!rc && s->stopped)
		rc = read_flights(s, p);
	else if (!rc)
		p->in_flight = s->skel->bss->flights_active;
	return rc;
}

int session__probe(struct profile *p, char *err, size_t len)
{
	struct session *s = calloc(1, sizeof(*s));
	int rc;

	if (!s) {
		snprintf(err, len, "out of memory");
		return 1;
	}
	libbpf_set_print(keep_message);
	s->skel = pathprof_bpf__open();
	if (!s->skel)
		rc = load_failed(-errno, err, len);
	else
		rc = find_hooks(s, err, len);
	if (!rc)
		describe_system(s, p);
	session__free(s);
	return rc;
}
