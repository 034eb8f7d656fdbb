// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds loaded programs of tc by their ids.  One that is interpreted, has no
 * type information or is loaded later is not seen.  Listing them takes
 * CAP_SYS_ADMIN: without it none is found.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include "kernel/programs.h"

/* The name of a function in the type information `id`; the kernel cuts it. */
static int name_function(uint32_t id, int function, char *name, size_t len)
{
	struct btf *btf = btf__load_from_kernel_by_id(id);
	const struct btf_type *type;

	type = btf ? btf__type_by_id(btf, function) : NULL;
	if (type)
		snprintf(name, len, "%s",
			 btf__name_by_offset(btf, type->name_off));
	btf__free(btf);
	return type ? 0 : -1;
}

static int describe(int fd, struct program *program)
{
	struct bpf_func_info first = {};
	struct bpf_prog_info info = {};
	uint32_t len = sizeof(info), btf;

	if (bpf_obj_get_info_by_fd(fd, &info, &len) ||
	    info.type != BPF_PROG_TYPE_SCHED_CLS || !info.btf_id ||
	    !info.nr_func_info || !info.jited_prog_len)
		return -1;
	program->id = info.id;
	btf = info.btf_id;
	memset(&info, 0, sizeof(info));
	info.func_info = (uintptr_t)&first;
	info.nr_func_info = 1;
	info.func_info_rec_size = sizeof(first);
	len = sizeof(info);
	if (bpf_obj_get_info_by_fd(fd, &info, &len) || !first.type_id)
		return -1;
	program->function = first.type_id;
	return name_function(btf, first.type_id, program->name,
			     sizeof(program->name));
}

size_t programs__find(struct program *programs, size_t n)
{
	uint32_t id = 0;
	size_t found = 0;
	int fd;

	while (found < n && !bpf_prog_get_next_id(id, &id)) {
		fd = bpf_prog_get_fd_by_id(id);
		if (fd < 0)
			continue;
		if (!describe(fd, &programs[found]))
			found++;
		close(fd);
	}
	return found;
}
