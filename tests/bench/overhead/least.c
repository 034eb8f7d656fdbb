// SPDX-License-Identifier: GPL-2.0-only
/*
 * Attaches the programs of least.bpf.c until it gets SIGINT.
 *
 * usage: least OBJECT LEVEL --ready-fd FD
 *   LEVEL  0  programs that return at once
 *          1  they read the clock
 *          2  and keep one record of the packet or socket in hand for each CPU
 *          3  and read what the headers and TCP say of it
 *          4  and add it to sums
 * A line goes to FD when all are attached.
 */
#include <err.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <bpf/libbpf.h>

int main(int argc, char **argv)
{
	struct bpf_program *prog;
	struct bpf_object *obj;
	struct bpf_map *map;
	sigset_t interrupt;
	__u32 level;
	int signal;

	if (argc != 5 || strcmp(argv[3], "--ready-fd"))
		errx(2, "usage: least OBJECT LEVEL --ready-fd FD");
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_BLOCK, &interrupt, NULL);
	level = atoi(argv[2]);
	obj = bpf_object__open(argv[1]);
	if (!obj)
		err(1, "%s", argv[1]);
	bpf_object__for_each_map(map, obj)
		if (strstr(bpf_map__name(map), ".rodata") &&
		    bpf_map__set_initial_value(map, &level, sizeof(level)))
			err(1, "level");
	if (bpf_object__load(obj))
		err(1, "load");
	bpf_object__for_each_program(prog, obj)
		if (!bpf_program__attach(prog))
			err(1, "%s", bpf_program__name(prog));
	if (write(atoi(argv[4]), "\n", 1) != 1)
		err(1, "ready");
	sigwait(&interrupt, &signal);
	bpf_object__close(obj);
	return 0;
}
