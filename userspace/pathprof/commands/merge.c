// SPDX-License-Identifier: GPL-2.0-only
/*
 * pathprof merge: profiles of several hosts or runs become one; all counts and
 * sums add up exactly.
 */
#include <errno.h>
#include <stdio.h>
#include "base/output-file.h"
#include "base/tool.h"
#include "profile/profile.h"

int cmd_merge(const struct command *self, int argc, char **argv)
{
	const char *output = NULL;
	const struct option_def options[] = {
		{ 'o', "output", OPT_TEXT, &output, 0, 0, "FILE",
		  "the profile file to write" },
		{ 0 }
	};
	int at = options__read(self, options, argc, argv), rc;
	struct profile sum, one;
	char err[512];

	if (at < 0)
		return options__status(at);
	if (!output || argc - at < 2) {
		complain("merge: name -o FILE and two profile files or more");
		return EXIT_USAGE;
	}
	if (output_file__check(output, err, sizeof(err))) {
		complain("merge: %s", err);
		return EXIT_FAILED;
	}
	if (profile__read(&sum, argv[at], err, sizeof(err))) {
		complain("merge: %s", err);
		return EXIT_FAILED;
	}
	for (rc = 0; !rc && ++at < argc;) {
		rc = profile__read(&one, argv[at], err, sizeof(err));
		if (rc)
			break;
		rc = profile__merge(&sum, &one);
		profile__free(&one);
		if (rc == -EINVAL)
			snprintf(err, sizeof(err), "%s was recorded with "
				 "another --sample than %s: a packet of one "
				 "is not worth one of the other", argv[at],
				 argv[at - 1]);
		else if (rc == -EXDEV)
			snprintf(err, sizeof(err), "%s was recorded with "
				 "another filter, --udp or --fine than %s: "
				 "the sum would be of neither", argv[at], argv[at - 1]);
		else if (rc == -EOVERFLOW)
			snprintf(err, sizeof(err), "with %s the sum is more "
				 "than a profile can hold", argv[at]);
		else if (rc)
			snprintf(err, sizeof(err), "out of memory");
	}
	if (!rc)
		rc = profile__write(&sum, output, err, sizeof(err));
	if (rc)
		complain("merge: %s", err);
	profile__free(&sum);
	return rc ? EXIT_FAILED : EXIT_GOOD;
}
