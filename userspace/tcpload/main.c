// SPDX-License-Identifier: GPL-2.0-only
/*
 * tcpload: traffic for measurements and tests, one command per kind of
 * traffic.  It sets nothing but options of its own sockets.
 */
#define _GNU_SOURCE
#include "tcpload.h"

#include <err.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#ifndef VERSION
#define VERSION "unknown"
#endif

static const struct command *const commands[] = {
	&bulk_command, &request_command, &bursts_command, &pingpong_command,
	&churn_command, &datagrams_command, &rounds_command, &pattern_command,
};

#define COUNT	(sizeof(commands) / sizeof(*commands))

static void usage(FILE *out)
{
	size_t i;

	fputs("usage: tcpload COMMAND [OPTIONS]\n"
	      "       tcpload COMMAND --help\n"
	      "Traffic between two network namespaces; results are JSON on "
	      "stdout.\n", out);
	for (i = 0; i < COUNT; i++)
		fprintf(out, "  %-11s %.*s\n", commands[i]->name,
			(int)strcspn(commands[i]->about, ".") + 1,
			commands[i]->about);
	fputs("Exit status: 0 done; 1 failed; 2 usage.\n", out);
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc < 2) {
		usage(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		usage(stdout);
		return finish_output();
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		puts("tcpload " VERSION);
		return finish_output();
	}
	for (i = 0; i < COUNT; i++) {
		if (strcmp(argv[1], commands[i]->name))
			continue;
		if (asprintf(&argv[1], "tcpload %s", argv[1]) < 0) /* for messages */
			err(1, "no memory");
		options_parse(commands[i], argc - 1, argv + 1);
		/*
		 * No page of the program is read from a disk while data flows:
		 * in a deterministic guest the clock jumps meanwhile.  Without
		 * the right to do so, it runs all the same.
		 */
		mlockall(MCL_CURRENT);
		return commands[i]->run(commands[i]->load);
	}
	errx(EXIT_USAGE, "no command %s; tcpload --help lists them", argv[1]);
}
