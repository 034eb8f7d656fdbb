// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls pathprof's commands in this process and judges what each says: its
 * exit status is one of its manual page, it either shows something or says in
 * one line why not, and what it wrote as a profile can be read again.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "fuzz.h"

#undef main	/* the Makefile renames pathprof's */
int pathprof_main(int argc, char **argv);

#define SOME 5	/* views of a mutant that was read */

/* LINES: of what there is, be it nothing. */
enum kind { TEXT, LINES, JSON, SVG, PROFILE, NOTHING };

struct view {
	enum kind kind;
	char *words[8];
};

static const struct view of_profiles[] = {
	{ TEXT, { "report", "mutant" } },
	{ TEXT, { "report", "-d", "mutant" } },
	{ TEXT, { "report", "-d", "--raw", "-n", "2", "mutant" } },
	{ PROFILE, { "report", "--json", "mutant" } },
	{ PROFILE, { "report", "--json", "--raw", "mutant" } },
	{ TEXT, { "explain", "mutant" } },
	{ JSON, { "explain", "--json", "mutant" } },
	{ TEXT, { "diff", "seed", "mutant" } },
	{ TEXT, { "diff", "--raw", "mutant", "mutant" } },
	{ JSON, { "diff", "--json", "mutant", "seed" } },
	{ TEXT, { "check", "--all", "seed", "mutant" } },
	{ TEXT, { "check", "--all", "mutant", "mutant" } },
	{ TEXT, { "check", "--all", "--raw", "seed", "mutant", "seed" } },
	{ JSON, { "check", "--json", "mutant", "seed" } },
	{ JSON, { "check", "--json", "mutant", "mutant" } },
	{ NOTHING, { "merge", "-o", "sum", "seed", "mutant" } },
	{ NOTHING, { "merge", "-o", "sum", "mutant", "mutant", "mutant" } },
	{ SVG, { "flame", "mutant" } },
	{ SVG, { "flame", "--raw", "mutant" } },
	{ PROFILE, { "export", "mutant" } },
	{ TEXT, { "export", "-f", "csv", "mutant" } },
	{ LINES, { "export", "-f", "folded", "mutant" } },
	{ TEXT, { "export", "-f", "openmetrics", "mutant" } },
	{ JSON, { "export", "-f", "perfetto", "mutant" } },
};

static const struct view of_events[] = {
	{ TEXT, { "journey", "mutant" } },
	{ TEXT, { "journey", "mutant", "--slowest" } },
	{ TEXT, { "journey", "mutant", "--path", "rx data" } },
	{ TEXT, { "journey", "mutant", "--list", "--path", "drop tx" } },
	{ TEXT, { "journey", "mutant", "2" } },
	{ JSON, { "journey", "mutant", "--trace", "stage" } },
	{ JSON, { "journey", "mutant", "--trace", "cpu" } },
	{ JSON, { "journey", "--json", "mutant", "1" } },
	{ JSON, { "journey", "--json", "mutant", "--slowest" } },
	{ JSON, { "journey", "--json", "--list", "--slowest", "mutant" } },
};

#define COUNT(list) (sizeof(list) / sizeof(*(list)))

struct output {
	int fd;
	const char *text;
	size_t length;
};

static struct output out, err;

void views__begin(void)
{
	out.fd = memfd_create("stdout", 0);
	err.fd = memfd_create("stderr", 0);
	dup2(out.fd, STDOUT_FILENO);
	dup2(err.fd, STDERR_FILENO);
	/* Its buffer is no view's. */
	putchar('\n');
	fflush(stdout);
}

static void forget(struct output *o)
{
	if (o->length)
		munmap((void *)o->text, o->length);
	o->text = "";
	o->length = 0;
	ftruncate(o->fd, 0);
	lseek(o->fd, 0, SEEK_SET);
}

static void take(struct output *o)
{
	o->length = lseek(o->fd, 0, SEEK_END);
	if (o->length)
		o->text = mmap(NULL, o->length, PROT_READ, MAP_SHARED, o->fd,
			       0);
}

static int run(char *const *words)
{
	char *argv[10] = { "pathprof" };
	int argc = 1, status;

	for (; *words; words++)
		argv[argc++] = *words;
	forget(&out);
	forget(&err);
	status = pathprof_main(argc, argv);
	fflush(stdout);
	take(&out);
	take(&err);
	return status;
}

/* 1 of check is "worse"; of all others, and its 125, a reason is given. */
static const char *judge_status(const struct view *v, int status)
{
	bool check = !strcmp(v->words[0], "check"), failed = status;

	if (status && status != 1 && !(check && status == 125))
		return "an exit status that its manual page does not list";
	if (check)
		failed = status == 125;
	if (!failed && (err.length || (v->kind != LINES &&
				       !out.length != (v->kind == NOTHING))))
		return "complains, or shows nothing, and says it is well";
	if (failed && (out.length || !err.length ||
		       memchr(err.text, '\n', err.length) !=
		       err.text + err.length - 1))
		return "fails, and does not say so in one line";
	return judge__text(err.text, err.length);
}

static void save(const char *name, const struct output *o)
{
	FILE *f = fopen(name, "we");

	fwrite(o->text, 1, o->length, f);
	fclose(f);
}

/* What was printed is read again, and printed the same. */
static const char *judge_again(const struct view *v)
{
	char *words[8] = {};
	struct output first = out;
	const char *why = NULL;
	size_t i;

	save("again", &out);
	for (i = 0; v->words[i]; i++)
		words[i] = strcmp(v->words[i], "mutant") ? v->words[i] :
			   "again";
	first.text = strndup(out.text, out.length);
	if (run(words))
		why = "a profile that cannot be read again";
	else if (out.length != first.length ||
		 memcmp(out.text, first.text, first.length))
		why = "a profile that is another when read again";
	free((void *)first.text);
	return why;
}

static const char *judge_sum(void)
{
	static char *const words[] = { "report", "--json", "--raw", "sum",
				       NULL };

	return run(words) ? "a profile that cannot be read" :
	       judge__json(out.text, out.length);
}

static const char *judge(const struct view *v, int status)
{
	const char *why = judge_status(v, status);

	if (why || err.length)
		return why;
	why = judge__text(out.text, out.length);
	if (why)
		return why;
	switch (v->kind) {
	case JSON:
		return judge__json(out.text, out.length);
	case SVG:
		return judge__svg(out.text, out.length);
	case PROFILE:
		why = judge__json(out.text, out.length);
		return why ? why : judge_again(v);
	case NOTHING:
		return judge_sum();
	default:
		return NULL;
	}
}

static int look(const struct view *v, char *shown, size_t size,
		const char **why)
{
	size_t before = allocated, i, at = 0;
	int status;

	for (i = 0; v->words[i]; i++)
		at += snprintf(shown + at, size - at, "%s%s", i ? " " : "",
			       v->words[i]);
	status = run(v->words);
	*why = judge(v, status);
	if (!*why && allocated != before)
		*why = "memory that is not given back";
	return status;
}

const char *views__run(struct dice *d, bool events, char *shown, size_t size,
		       bool *accepted)
{
	const struct view *views = events ? of_events : of_profiles;
	size_t n = events ? COUNT(of_events) : COUNT(of_profiles), i;
	const char *why;

	*accepted = !look(&views[0], shown, size, &why);
	/* What one reader refused, all do: two of them will. */
	for (i = *accepted ? SOME : 2; i && !why; i--)
		look(&views[dice__below(d, n)], shown, size, &why);
	forget(&out);
	forget(&err);
	return why;
}
