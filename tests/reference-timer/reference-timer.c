// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs a command while reference-timer.bpf.c keeps stages busy or times them, and
 * prints name, count and mean ns of each timed stage behind what the command
 * prints.
 *
 * usage: reference-timer OBJECT watch|delay RX DRIVER COPY CRYPT COMMAND...
 *   RX DRIVER COPY  turns of a loop to add to each stage; 0: none
 *   CRYPT           the same to WireGuard's encryption and decryption
 */
#include <err.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define STAGES 3
#define DELAYS 4

static const char *const names[STAGES] = { "rx", "driver", "copy" };

struct watch {
	unsigned long long count, ns, begin, skb;
};

static bool wanted(const struct bpf_program *prog, bool watch, char **rounds)
{
	static const struct {
		const char *function;
		int at;
	} delays[] = {
		{ "tcp_v4_rcv", 0 }, { "loopback_xmit", 1 },
		{ "simple_copy_to_iter", 2 },
		{ "chacha20poly1305_encrypt_sg_inplace", 3 },
		{ "chacha20poly1305_decrypt_sg_inplace", 3 },
	};
	size_t i;

	for (i = 0; i < sizeof(delays) / sizeof(*delays); i++)
		if (!strcmp(bpf_program__name(prog), delays[i].function))
			return atoi(rounds[delays[i].at]) > 0;
	return watch;
}

static void print(const struct watch *w)
{
	int i;

	for (i = 0; i < STAGES; i++)
		if (w[i].count)
			printf("%s %llu %.1f\n", names[i], w[i].count,
			       (double)w[i].ns / w[i].count);
}

static int run(char **argv)
{
	int status;
	pid_t pid;

	pid = fork();
	if (!pid) {
		execvp(argv[0], argv);
		err(127, "%s", argv[0]);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		err(1, "%s", argv[0]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv)
{
	struct watch watches[STAGES];
	struct bpf_program *prog;
	struct bpf_object *obj;
	struct bpf_map *map;
	__u32 rounds[DELAYS];
	int i, status;
	bool watch;

	if (argc < 8)
		errx(2, "usage: reference-timer OBJECT watch|delay RX DRIVER COPY "
		     "CRYPT COMMAND...");
	watch = !strcmp(argv[2], "watch");
	for (i = 0; i < DELAYS; i++)
		rounds[i] = atoi(argv[3 + i]);
	obj = bpf_object__open_file(argv[1], NULL);
	if (!obj)
		err(1, "%s", argv[1]);
	bpf_object__for_each_program(prog, obj)
		bpf_program__set_autoload(prog, wanted(prog, watch, argv + 3));
	map = bpf_object__find_map_by_name(obj, ".rodata");
	if (!map || bpf_map__set_initial_value(map, rounds, sizeof(rounds)))
		errx(1, "the object has other constants than these");
	if (bpf_object__load(obj))
		err(1, "load");
	bpf_object__for_each_program(prog, obj)
		if (bpf_program__autoload(prog) && !bpf_program__attach(prog))
			err(1, "attach %s", bpf_program__name(prog));
	status = run(argv + 7);
	map = bpf_object__find_map_by_name(obj, ".bss");
	if (!map || bpf_map__lookup_elem(map, &(int){ 0 }, sizeof(int),
					 watches, sizeof(watches), 0))
		err(1, "read");
	print(watches);
	return fflush(stdout) ? 1 : status;
}
