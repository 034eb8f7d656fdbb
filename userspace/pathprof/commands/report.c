// SPDX-License-Identifier: GPL-2.0-only
/*
 * pathprof report: show a profile file.  Works on any machine, without
 * privileges.
 */
#include <jansson.h>
#include <stdio.h>
#include "base/tool.h"
#include "view/render.h"

int cmd_report(const struct command *self, int argc, char **argv)
{
	bool json = false, detail = false, raw = false;
	unsigned int limit = 0;
	const struct option_def options[] = {
		{ 0, "json", OPT_FLAG, &json, 0, 0, NULL,
		  "print the profile as JSON" },
		{ 'd', "detail", OPT_FLAG, &detail, 0, 0, NULL,
		  "cost of each stage, and a histogram per path" },
		RAW_OPTION(&raw),
		{ 'n', "limit", OPT_UINT, &limit, 1, PATH_PATHS, "N",
		  "show only the N most expensive paths" },
		{ 0 }
	};
	int at = options__read(self, options, argc, argv), rc;
	struct render_options view = { .stages = true };
	struct profile p;
	char err[512];

	if (at < 0)
		return options__status(at);
	if (at != argc - 1) {
		complain("report: %s (see pathprof report --help)",
			 at < argc ? "one FILE, please, after the options" :
			 "which FILE?");
		return EXIT_USAGE;
	}
	if (profile__view(&p, argv[at], raw, err, sizeof(err))) {
		complain("%s", err);
		return EXIT_FAILED;
	}
	view.limit = limit;
	view.detail = detail;
	rc = 0;
	if (json) {
		rc = print_json(profile__to_json(&p), JSON_INDENT(1));
	} else {
		char command[71];

		if (p.command)
			printf("Command: %s\n", printable(p.command, command,
							   sizeof(command)));
		render__text(stdout, &p, &p, &view);
	}
	profile__free(&p);
	return finish_stdout(rc ? EXIT_FAILED : EXIT_GOOD);
}
