// SPDX-License-Identifier: GPL-2.0-only
/*
 * pathprof completion: a script for bash that completes commands, options and
 * files.  It asks the program itself, so it is never out of date.
 */
#include <stdio.h>
#include "base/tool.h"

static const char script[] =
"# bash completion of pathprof; source this, or keep it as\n"
"# /etc/bash_completion.d/pathprof\n"
"_pathprof()\n"
"{\n"
"	local cur=${COMP_WORDS[COMP_CWORD]} words\n"
"	if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
"		words=$(pathprof --help | sed -n 's/^  \\([a-z]*\\) .*/\\1/p')\n"
"		COMPREPLY=($(compgen -W \"$words --top --help --version\" \\\n"
"			-- \"$cur\"))\n"
"	elif [ \"${cur:0:1}\" = - ]; then\n"
"		words=$(pathprof \"${COMP_WORDS[1]#--}\" --help |\n"
"			sed -n 's/^  [ -].[ ,] \\(--[a-z-]*\\).*/\\1/p')\n"
"		COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
"	else\n"
"		COMPREPLY=($(compgen -f -- \"$cur\"))\n"
"	fi\n"
"}\n"
"complete -o filenames -F _pathprof pathprof\n";

int cmd_completion(const struct command *self, int argc, char **argv)
{
	const struct option_def options[] = { { 0 } };
	int at = options__read(self, options, argc, argv);

	if (at < 0)
		return options__status(at);
	if (at < argc) {
		complain("completion: takes no words, not \"%s\"", argv[at]);
		return EXIT_USAGE;
	}
	fputs(script, stdout);
	return finish_stdout(EXIT_GOOD);
}
