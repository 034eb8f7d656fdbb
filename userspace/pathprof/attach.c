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
#include <sys/random.h>
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

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* How often each name occurs in the kernel's symbol table; -1: unreadable. */
static int count_symbols(char **names, int *counts, size_t n)
{
	FILE *f = fopen("/proc/kallsyms", "r");
	char line[512], *name, **hit;

	memset(counts, 0, n * sizeof(*counts));
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f)) {
		/* address type name [module] */
		name = strchr(line, ' ');
		if (!name || !name[1] || name[2] != ' ')
			continue;
		name += 3;
		name[strcspn(name, " \t\n")] = 0;
		hit = bsearch(&name, names, n, sizeof(*names), by_name);
		if (hit)
			counts[hit - names]++;
	}
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

static void find_hook(struct profile_hook *hook, const struct btf *btf,
		      int symbols)
{
	char type[64];

	hook->state = HOOK_MISSING;
	if (!strcmp(hook->type, "tp_btf")) {
		snprintf(type, sizeof(type), "btf_trace_%s", hook->name);
		if (btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) < 0)
			snprintf(hook->why, sizeof(hook->why),
				 "no such tracepoint");
		else
			hook->state = HOOK_PRESENT;
		return;
	}
	if (btf__find_by_name_kind(btf, hook->name, BTF_KIND_FUNC) < 0)
		snprintf(hook->why, sizeof(hook->why), "inlined or absent");
	else if (!symbols)
		snprintf(hook->why, sizeof(hook->why),
			 "only a changed copy has a symbol");
	else if (symbols > 1)
		snprintf(hook->why, sizeof(hook->why),
			 "%d symbols of this name", symbols);
	else
		hook->state = HOOK_PRESENT;
}

/* Drop reasons are an enum whose values change between kernels. */
static void read_reasons(struct session *s, const struct btf *btf)
{
	int id = btf__find_by_name_kind(btf, "skb_drop_reason", BTF_KIND_ENUM);
	const struct btf_type *type;
	const struct btf_enum *e;
	const char *name;
	char *c;
	int i;

	if (id < 0)
		return;
	type = btf__type_by_id(btf, id);
	e = btf_enum(type);
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

/* Decide for every program whether this kernel has its hook. */
static int find_hooks(struct session *s, char *err, size_t len)
{
	char *names[PROFILE_HOOKS];
	int counts[PROFILE_HOOKS];
	struct bpf_program *prog;
	bool no_symbols;
	struct btf *btf;
	char *key, **at;
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
		s->programs[n] = prog;
		split_section(prog, &s->hooks[n]);
		names[n] = s->hooks[n].name;
		n++;
	}
	s->nhooks = n;
	qsort(names, n, sizeof(*names), by_name);
	no_symbols = count_symbols(names, counts, n) < 0;
	for (i = 0; i < n; i++) {
		key = s->hooks[i].name;
		at = bsearch(&key, names, n, sizeof(*names), by_name);
		find_hook(&s->hooks[i], btf,
			  no_symbols ? 1 : counts[at - names]);
	}
	read_reasons(s, btf);
	btf__free(btf);
	return 0;
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

static int attach_all(struct session *s)
{
	struct profile_hook *hook;
	int attached = 0;
	size_t i;

	for (i = 0; i < s->nhooks; i++) {
		hook = &s->hooks[i];
		if (hook->state != HOOK_PRESENT)
			continue;
		s->links[i] = bpf_program__attach(s->programs[i]);
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
	s->skel = pathprof_bpf__open();
	if (!s->skel) {
		rc = load_failed(-errno, err, len);
		goto free;
	}
	rc = find_hooks(s, err, len);
	if (rc)
		goto free;
	for (i = 0; i < s->nhooks; i++)
		bpf_program__set_autoload(s->programs[i],
					  s->hooks[i].state == HOOK_PRESENT);
	set_config(s->skel, config);
	rc = pathprof_bpf__load(s->skel);
	if (rc) {
		rc = load_failed(rc, err, len);
		goto free;
	}
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
	 * Hooks go one by one.  A packet that met only some of them would
	 * seem to have skipped stages, so nobody may write from here on.
	 */
	__atomic_store_n(active, FLIGHTS_FROZEN, __ATOMIC_SEQ_CST);
	for (i = 0; i < s->nhooks; i++) {
		bpf_link__destroy(s->links[i]);
		s->links[i] = NULL;
	}
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
