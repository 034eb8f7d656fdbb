// SPDX-License-Identifier: GPL-2.0-only
/*
 * Hands damaged and hostile files to all of pathprof that reads files, under
 * the sanitizers.  The number of a mutant and the seed make the mutant: any
 * one of them can be had again.
 */
#include <errno.h>
#include <getopt.h>
#include <sanitizer/common_interface_defs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "fuzz.h"

#undef main	/* the Makefile renames pathprof's */

#define BATCH		256		/* mutants of one process */
#define CPU_LIMIT	10		/* seconds of one mutant, all its views */
#define WALL_LIMIT	600
#define MEMORY_LIMIT	(256UL << 20)	/* bytes; mutants have 1 M at most */
#define FAILURES	20		/* then it stops */

struct options {
	uint64_t seed, mutants, only;
	double seconds;
	const char *keep;
	bool one;
};

/* What the process of a batch reports, even if it dies. */
struct shared {
	uint64_t index, done, accepted, digest;
	char view[128], why[128];
};

static struct shared *shared;
static uint64_t failures;
size_t allocated;

/* Of the sanitizer; gcc has no header for it. */
size_t __sanitizer_get_allocated_size(const volatile void *p);
/*
 * It calls these: a view may not take all memory, and must give it back.  (The
 * sanitizer's own search for leaks stops all threads, and takes its time.)
 */
void __sanitizer_malloc_hook(const volatile void *p, size_t size);
void __sanitizer_free_hook(const volatile void *p);

void __sanitizer_malloc_hook(const volatile void *p, size_t size)
{
	(void)p;
	allocated += size;
	if (allocated > MEMORY_LIMIT && shared && shared->view[0]) {
		snprintf(shared->why, sizeof(shared->why), "memory");
		abort();
	}
}

void __sanitizer_free_hook(const volatile void *p)
{
	if (p)
		allocated -= __sanitizer_get_allocated_size(p);
}

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "exitcode=99:quarantine_size_mb=8:allocator_may_return_null=0:"
	       "detect_leaks=0:malloc_context_size=6";
}

static void write_file(const char *path, const struct text *t)
{
	FILE *f = fopen(path, "we");

	if (!f || fwrite(t->bytes, 1, t->length, f) != t->length || fclose(f)) {
		fprintf(stderr, "fuzz: cannot write %s\n", path);
		exit(2);
	}
}

static void limit_time(void)
{
	struct itimerval cpu = { .it_value.tv_sec = CPU_LIMIT };

	setitimer(ITIMER_PROF, &cpu, NULL);
	alarm(WALL_LIMIT);
}

static uint64_t hash(const struct text *t)
{
	uint64_t h = 14695981039346656037u;
	size_t i;

	for (i = 0; i < t->length; i++)
		h = (h ^ (unsigned char)t->bytes[i]) * 1099511628211u;
	return h;
}

static struct dice dice_of(const struct options *o, uint64_t index)
{
	struct dice d = { o->seed };

	d.state = dice__roll(&d) ^ index;
	return d;
}

/* Runs in its own process.  Its output is discarded; how it ends is judged. */
static void run_batch(const struct seeds *seeds, const struct options *o,
		      uint64_t first, uint64_t n)
{
	const char *why = NULL;
	bool events, accepted;
	struct dice d;
	struct text t;
	uint64_t i;

	__sanitizer_set_report_fd((void *)(uintptr_t)dup(STDERR_FILENO));
	views__begin();
	for (i = first; i < first + n && !why; i++) {
		shared->index = i;
		shared->view[0] = 0;
		d = dice_of(o, i);
		t = mutate(seeds, &d, &events);
		shared->digest += hash(&t);
		write_file("mutant", &t);
		free(t.bytes);
		limit_time();
		allocated = 0;
		snprintf(shared->view, sizeof(shared->view), "(none)");
		why = views__run(&d, events, shared->view,
				 sizeof(shared->view), &accepted);
		shared->done++;
		shared->accepted += accepted;
	}
	if (why) {
		snprintf(shared->why, sizeof(shared->why), "%s", why);
		_exit(1);
	}
	_exit(0);
}

static void report(const struct options *o, int status)
{
	int sign = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	failures++;
	printf("# mutant %llu: pathprof %s: %s\n",
	       (unsigned long long)shared->index, shared->view,
	       shared->why[0] ? shared->why :
	       sign == SIGPROF || sign == SIGALRM ? "does not end" :
	       sign ? strsignal(sign) : "the sanitizers' report is above");
	printf("# to have it: -s %llu -i %llu -k FILE\n",
	       (unsigned long long)o->seed, (unsigned long long)shared->index);
	fflush(stdout);
}

static void run_range(const struct seeds *seeds, const struct options *o,
		      uint64_t first, uint64_t n)
{
	uint64_t end = first + n;
	int status;
	pid_t pid;

	while (first < end && failures < FAILURES) {
		memset(shared->why, 0, sizeof(shared->why));
		fflush(stdout);
		pid = fork();
		if (!pid)
			run_batch(seeds, o, first, end - first);
		if (pid < 0 || waitpid(pid, &status, 0) < 0) {
			perror("fuzz: fork");
			exit(2);
		}
		if (!status)
			return;
		report(o, status);
		first = shared->index + 1;
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void run_all(const struct seeds *seeds, const struct options *o)
{
	double end = now() + o->seconds;
	uint64_t at = 0, n;

	if (o->one) {
		run_range(seeds, o, o->only, 1);
		return;
	}
	while (failures < FAILURES &&
	       (o->seconds ? now() < end : at < o->mutants)) {
		n = o->seconds || o->mutants - at > BATCH ? BATCH :
		    o->mutants - at;
		run_range(seeds, o, at, n);
		at += n;
	}
}

/* The folder in which views find their files; memory, if there is such. */
static void enter(char *folder)
{
	strcpy(folder, "/dev/shm/fuzz.XXXXXX");
	if (!mkdtemp(folder)) {
		strcpy(folder, "/tmp/fuzz.XXXXXX");
		if (!mkdtemp(folder)) {
			perror("fuzz: a folder for its files");
			exit(2);
		}
	}
	if (chdir(folder))
		exit(2);
}

static void leave(const char *folder)
{
	static const char *const names[] = { "mutant", "seed", "sum", "again" };
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlink(names[i]);
	rmdir(folder);
}

static void read_options(struct options *o, int argc, char **argv)
{
	int c;

	while ((c = getopt(argc, argv, "s:n:t:i:k:")) != -1) {
		if (c == 's')
			o->seed = strtoull(optarg, NULL, 0);
		else if (c == 'n')
			o->mutants = strtoull(optarg, NULL, 0);
		else if (c == 't')
			o->seconds = strtod(optarg, NULL);
		else if (c == 'i')
			o->one = true, o->only = strtoull(optarg, NULL, 0);
		else if (c == 'k')
			o->keep = optarg;
		else
			optind = argc;
	}
	if (optind >= argc) {
		fprintf(stderr, "Usage: fuzz [-s SEED] [-n MUTANTS | -t SECONDS "
			"| -i MUTANT [-k FILE]] FILE...\n");
		exit(2);
	}
}

/* Of the first kept profile; the partner of mutants in diff, check, merge. */
static const struct text *partner(const struct seeds *seeds)
{
	size_t i;

	for (i = 0; i + 1 < seeds->n && seeds->list[i].events; i++)
		;
	return &seeds->list[i].text;
}

int main(int argc, char **argv)
{
	struct options o = { .seed = 1, .mutants = 1000 };
	static struct seeds seeds;
	char folder[32];
	struct dice d;
	struct text t;
	bool events;

	read_options(&o, argc, argv);
	while (optind < argc)
		seeds__read(&seeds, argv[optind++]);
	if (o.one && o.keep) {
		d = dice_of(&o, o.only);
		t = mutate(&seeds, &d, &events);
		write_file(o.keep, &t);
		free(t.bytes);
	}
	if (judge__selves()) {
		printf("# a judge is wrong: %s\n", judge__selves());
		return 1;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	enter(folder);
	write_file("seed", partner(&seeds));
	run_all(&seeds, &o);
	leave(folder);
	printf("seed %llu: %llu mutants, %llu of them read, sum %016llx, %llu "
	       "failures\n", (unsigned long long)o.seed,
	       (unsigned long long)shared->done,
	       (unsigned long long)shared->accepted,
	       (unsigned long long)shared->digest,
	       (unsigned long long)failures);
	return failures != 0;
}
