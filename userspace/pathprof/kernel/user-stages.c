// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions of --stage: their names, and the argument that is the packet, from
 * the kernel's type information.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <bpf/btf.h>
#include "base/tool.h"
#include "kernel/hooks.h"
#include "kernel/modules.h"
#include "kernel/user-stages.h"

#define ARGUMENTS	12	/* a function with more cannot be hooked */

static bool is_name(const char *word, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (!isalnum((unsigned char)word[i]) && word[i] != '_')
			return false;
	return n && !isdigit((unsigned char)*word);
}

static bool has(const struct user_stages *u, const char *word, size_t n)
{
	size_t i;

	for (i = 0; i < u->n; i++)
		if (strlen(u->functions[i]) == n &&
		    !strncmp(u->functions[i], word, n))
			return true;
	return false;
}

int user_stages__read(struct user_stages *u, const char *text, char *err,
		      size_t len)
{
	char word[64], clean[64];
	const char *s;
	size_t n;

	memset(u, 0, sizeof(*u));
	for (s = text;; s += n + 1) {
		n = strcspn(s, ",");
		snprintf(word, sizeof(word), "%.*s", (int)(n < 63 ? n : 63), s);
		printable(word, clean, sizeof(clean));
		if (!is_name(s, n)) {
			snprintf(err, len, "\"%s\" is no name of a function",
				 clean);
			return -EINVAL;
		}
		if (n >= sizeof(u->functions[0])) {
			snprintf(err, len, "%s...: names have at most %zu "
				 "characters", clean,
				 sizeof(u->functions[0]) - 1);
			return -EINVAL;
		}
		if (has(u, s, n)) {
			snprintf(err, len, "%s is there twice", clean);
			return -EINVAL;
		}
		if (u->n == USER_STAGES) {
			snprintf(err, len, "at most %d functions", USER_STAGES);
			return -EINVAL;
		}
		memcpy(u->functions[u->n], s, n);
		u->n++;
		if (!s[n])
			return 0;
	}
}

/* Which argument is a struct sk_buff *; -1: none. */
static int packet_of(const struct btf *btf, int id)
{
	const struct btf_type *type = btf__type_by_id(btf, id);
	const struct btf_param *args;
	int i, n;

	type = btf__type_by_id(btf, type->type);
	args = btf_params(type);
	n = btf_vlen(type) < ARGUMENTS ? btf_vlen(type) : ARGUMENTS;
	for (i = 0; i < n; i++) {
		type = btf__type_by_id(btf, args[i].type);
		while (type && btf_is_mod(type))
			type = btf__type_by_id(btf, type->type);
		if (!type || !btf_is_ptr(type))
			continue;
		type = btf__type_by_id(btf, type->type);
		while (type && btf_is_mod(type))
			type = btf__type_by_id(btf, type->type);
		if (type && (btf_is_struct(type) || btf_is_fwd(type)) &&
		    !strcmp(btf__name_by_offset(btf, type->name_off),
			    "sk_buff"))
			return i;
	}
	return -1;
}

/* A function's place in the kernel or in a module; 0: nowhere. */
static int find(struct btf *vmlinux, const char *function, int *argument)
{
	struct btf *module;
	int id;

	id = btf__find_by_name_kind(vmlinux, function, BTF_KIND_FUNC);
	if (id > 0) {
		*argument = packet_of(vmlinux, id);
		return id;
	}
	module = modules__search(vmlinux, function, &id);
	if (!module)
		return 0;
	*argument = packet_of(module, id);
	btf__free(module);
	return id;
}

int user_stages__find(struct user_stages *u, char *err, size_t len)
{
	struct btf *vmlinux;
	int argument, rc = 0;
	size_t i;

	if (!u->n)
		return 0;
	vmlinux = btf__parse(BTF_PATH, NULL);
	if (!vmlinux) {
		snprintf(err, len, "cannot read kernel type information %s: %s",
			 BTF_PATH, strerror(errno));
		return -EOPNOTSUPP;
	}
	for (i = 0; !rc && i < u->n; i++) {
		if (!find(vmlinux, u->functions[i], &argument)) {
			snprintf(err, len, "--stage %s: neither this kernel "
				 "nor a loaded module has this function, or "
				 "the compiler has inlined it",
				 u->functions[i]);
			rc = -EOPNOTSUPP;
		} else if (argument < 0) {
			snprintf(err, len, "--stage %s: the function has no "
				 "packet (struct sk_buff *) among its "
				 "arguments", u->functions[i]);
			rc = -EOPNOTSUPP;
		} else {
			u->arguments[i] = argument;
		}
	}
	btf__free(vmlinux);
	return rc;
}

void user_stages__fill(const struct user_stages *u, struct profile *p)
{
	struct profile_stage *s;
	size_t i;

	for (i = 0; i < u->n; i++) {
		s = &p->stages[ST_USER + i];
		*s = (struct profile_stage){
			.dir = DIR_ANY, .kind = KIND_WORK, .order = 186,
			.known = true,
		};
		snprintf(s->name, sizeof(s->name), "%s", u->functions[i]);
		snprintf(s->hooks, sizeof(s->hooks), "%s", u->functions[i]);
		snprintf(s->meaning, sizeof(s->meaning),
			 "a function that --stage named");
	}
}
