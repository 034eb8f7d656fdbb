// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which options of record and top go together, and the defaults of those that
 * were not given.
 */
#include "filter.h"
#include "record-options.h"
#include "stage-groups.h"

static int settle_stages(struct record_options *o, const char *command)
{
	char err[160];

	if (!o->stages)
		return 0;
	o->config.stage_groups = stage_groups__read(o->stages, err, sizeof(err));
	if (!o->config.stage_groups) {
		complain("%s: --stages: %s", command, err);
		return EXIT_USAGE;
	}
	if (o->config.sample)
		return 0;
	complain("%s: --stages needs --sample: sampling bursts attach "
		 "tracepoints only", command);
	return EXIT_USAGE;
}

int record_options__settle(struct record_options *o, const char *command)
{
	int rc = settle_stages(o, command);

	if (rc)
		return rc;
	if (o->config.sample && o->config.budget) {
		complain("%s: --sample or --budget, not both", command);
		return EXIT_USAGE;
	}
	if (o->config.fine && !o->config.sample) {
		complain("%s: --fine needs --sample: sampling "
			 "bursts attach tracepoints only", command);
		return EXIT_USAGE;
	}
	if (o->cgroup && o->config.udp && !o->config.sample) {
		complain("%s: --cgroup with --udp needs --sample: sampling "
			 "bursts do not see the socket of a datagram", command);
		return EXIT_USAGE;
	}
	if (!o->config.sample && !o->config.budget)
		o->config.budget = DEFAULT_BUDGET;
	if (o->config.budget)
		o->config.stage_times = true;
	return filter__settle(o, command);
}
