// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which hooks the running kernel has, by its type information and its symbol
 * table.  Loads nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <bpf/btf.h>
#include "kernel/hooks.h"
#include "kernel/modules.h"
#include "kernel/symbols.h"

/* The kernel's data about the function or tracepoint of one hook. */
struct target {
	const char *name;
	int symbols;		/* of this name in the symbol table */
	int function, event;	/* BTF ids; 0: none */
	const char *module;	/* whose function it is; NULL: the kernel's */
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

struct wanted_symbols {
	struct target *targets;
	size_t n;
	bool initial[256];	/* most names are left at their first letter */
};

static void count_symbol(void *arg, char *line, char *name)
{
	struct wanted_symbols *w = arg;
	struct target *hit;

	(void)line;
	if (!w->initial[(unsigned char)*name])
		return;
	symbols__cut(name);
	hit = find_target(w->targets, w->n, name);
	if (hit)
		hit->symbols++;
}

/* Count the names in the kernel's symbol table. */
static int count_symbols(struct target *targets, size_t n)
{
	struct wanted_symbols w = { .targets = targets, .n = n };
	size_t i;

	for (i = 0; i < n; i++)
		w.initial[(unsigned char)*targets[i].name] = true;
	return symbols__each(count_symbol, &w);
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
	if (!target->function && modules__of(target->name))
		snprintf(hook->why, sizeof(hook->why),
			 "module %s is not loaded, or has it inlined",
			 modules__of(target->name));
	else if (!target->function)
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

/* One walk over the kernel's 150000 types instead of one per name. */
static void walk_types(const struct btf *btf, struct target *targets,
		       size_t count, struct drops *drops)
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
			drops__read_enum(drops, btf, type, "");
		} else if (btf_is_func(type)) {
			hit = find_target(targets, count, name);
			if (hit && !hit->function)
				hit->function = id;
		} else if (!strncmp(name, "btf_trace_", 10)) {
			hit = find_target(targets, count, name + 10);
			if (hit)
				hit->event = id;
		}
	}
}

/* Only of the module that the hook is meant for: names are not unique. */
struct wanted {
	struct target *targets;
	size_t n;
};

static void module_function(void *arg, const char *name, int id,
			    const char *module)
{
	const struct wanted *w = arg;
	struct target *hit = find_target(w->targets, w->n, name);
	const char *home = hit ? modules__of(name) : NULL;

	if (!home || strcmp(home, module) || hit->function)
		return;
	hit->function = id;
	hit->module = home;
}

/* Distinct names, sorted; a function may have two hooks. */
static size_t list_targets(struct target *targets,
			   const struct profile_hook *hooks, size_t n)
{
	size_t i, kept = 0;

	for (i = 0; i < n; i++)
		targets[i].name = hooks[i].name;
	qsort(targets, n, sizeof(*targets), by_name);
	for (i = 0; i < n; i++)
		if (!kept || strcmp(targets[kept - 1].name, targets[i].name))
			targets[kept++] = targets[i];
	return kept;
}

int hooks__find(struct profile_hook *hooks, size_t n,
		struct hook_place *places, bool functions,
		struct drops *drops, char *err, size_t len)
{
	struct target targets[PROFILE_HOOKS] = {}, *target;
	size_t i, kept = list_targets(targets, hooks, n);
	bool no_symbols;
	struct btf *btf;

	btf = btf__parse(BTF_PATH, NULL);
	if (!btf) {
		snprintf(err, len, "cannot read kernel type information %s: "
			 "%s; a kernel with CONFIG_DEBUG_INFO_BTF is needed",
			 BTF_PATH, strerror(errno));
		return -EOPNOTSUPP;
	}
	no_symbols = !functions || count_symbols(targets, kept) < 0;
	walk_types(btf, targets, kept, drops);
	drops__read_modules(drops, btf);
	modules__functions(btf, module_function,
			   &(struct wanted){ targets, kept });
	btf__free(btf);
	for (i = 0; i < n; i++) {
		target = find_target(targets, kept, hooks[i].name);
		if (no_symbols)
			target->symbols = 1;
		find_hook(&hooks[i], target);
		if (!strcmp(hooks[i].type, "tp_btf"))
			places[i].id = target->event;
		else
			places[i] = (struct hook_place){ target->function,
							 target->module };
	}
	return 0;
}

/* One that failed counts, not others of the function that were not tried. */
static bool has_hook(const struct profile *p, const char *name)
{
	bool has = false;
	size_t i;

	for (i = 0; i < p->nhooks; i++) {
		if (strcmp(p->hooks[i].name, name))
			continue;
		if (p->hooks[i].state == HOOK_FAILED)
			return false;
		has |= p->hooks[i].state <= HOOK_PRESENT;
	}
	return has;
}

static bool stage_has_hook(const struct profile *p, const char *hooks)
{
	char list[160], *word, *rest = list;

	snprintf(list, sizeof(list), "%s", hooks);
	while ((word = strsep(&rest, " ")))
		if (has_hook(p, word))
			return true;
	return false;
}

void hooks__stages(struct profile *p)
{
	size_t i;

	for (i = 0; i < PATHPROF_STAGE_MAX; i++)
		if (p->stages[i].known)
			p->stages[i].available =
				stage_has_hook(p, p->stages[i].hooks);
}
