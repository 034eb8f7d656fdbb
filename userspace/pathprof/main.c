// SPDX-License-Identifier: GPL-2.0-only
/*
 * pathprof: which paths packets take through the kernel's TCP stack, and
 * what each path costs.  This file holds the table of commands only.
 */
#include <stdio.h>
#include <string.h>
#include "base/tool.h"

static const struct command commands[] = {
	{ "top", "[OPTIONS]",
	  "Show the paths packets take right now", cmd_top },
	{ "record", "-o FILE [OPTIONS] [-- COMMAND [ARGS...]]",
	  "Record paths into a profile file", cmd_record },
	{ "report", "[OPTIONS] FILE",
	  "Show a profile file", cmd_report },
	{ "explain", "[OPTIONS] FILE",
	  "Explain why packets took one way and not another", cmd_explain },
	{ "journey", "[OPTIONS] EVENTS-FILE [PACKET]",
	  "Show the stages of one packet, one by one", cmd_journey },
	{ "diff", "[OPTIONS] OLD NEW",
	  "Compare two profile files", cmd_diff },
	{ "check", "[OPTIONS] BASE... NEW",
	  "Report by exit status whether a profile became worse", cmd_check },
	{ "flame", "FILE >PICTURE.svg",
	  "Draw a profile file as a flame graph (SVG)", cmd_flame },
	{ "export", "[OPTIONS] FILE",
	  "Write a profile file in another format", cmd_export },
	{ "merge", "-o FILE FILE FILE...",
	  "Add up profile files", cmd_merge },
	{ "completion", "",
	  "Print a completion script for bash", cmd_completion },
	{ "list", "[OPTIONS]",
	  "List the stages, and whether this kernel has them", cmd_list },
};

#define NCOMMANDS (sizeof(commands) / sizeof(*commands))

static int help(void)
{
	size_t i;

	printf("Usage: pathprof COMMAND [OPTIONS]\n\n"
	       "Show which paths packets take through the TCP stack, and what "
	       "each\npath costs.\n\n");
	for (i = 0; i < NCOMMANDS; i++)
		printf("  %-10s %s\n", commands[i].name, commands[i].summary);
	printf("\n`pathprof --top` runs `pathprof top`.  "
	       "`pathprof COMMAND --help` lists options.\n\n"
	       "Exit status: 0 good, 1 failed, 2 usage error, 3 not supported "
	       "here, 127 COMMAND\nof record not found.\n");
	return finish_stdout(EXIT_GOOD);
}

int main(int argc, char **argv)
{
	const char *names[NCOMMANDS];
	const char *word = argc > 1 ? argv[1] : NULL;
	size_t i;

	if (!word) {
		complain("no command given: top, record, report, explain, ... "
			 "(see pathprof --help)");
		return EXIT_USAGE;
	}
	if (!strcmp(word, "-h") || !strcmp(word, "--help"))
		return help();
	if (!strcmp(word, "-V") || !strcmp(word, "--version")) {
		printf("pathprof %s\n", VERSION);
		return finish_stdout(EXIT_GOOD);
	}
	if (!strcmp(word, "--top"))
		word = "top";
	for (i = 0; i < NCOMMANDS; i++) {
		names[i] = commands[i].name;
		if (!strcmp(word, commands[i].name))
			return commands[i].run(&commands[i], argc - 2,
					       argv + 2);
	}
	complain("unknown command \"%s\"%s (see pathprof --help)", word,
		 nearest(word + strspn(word, "-"), names, NCOMMANDS));
	return EXIT_USAGE;
}
