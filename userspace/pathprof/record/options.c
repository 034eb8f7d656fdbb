// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which options of record and top go together, and the defaults of those that
 * were not given.
 */
#include "kernel/stage-groups.h"
#include "record/filter.h"
#include "record/options.h"

static int settle_stages(struct record_options *o, const char *command)
{
	char err[160];

	if (o->stages)
		o->config.stage_groups = stage_groups__read(o->stages, err,
							    sizeof(err));
	if (o->stages && !o->config.stage_groups) {
		complain("%s: --stages: %s", command, err);
		return EXIT_USAGE;
	}
	if (o->functions &&
	    user_stages__read(&o->config.users, o->functions, err,
			      sizeof(err))) {
		complain("%s: --stage: %s", command, err);
		return EXIT_USAGE;
	}
	if (o->functions)
		o->config.stage_groups |= stage_groups__none();
	if (o->config.nat &&
	    !stage_groups__want(o->config.stage_groups, false,
				"nf_conntrack_in")) {
		complain("%s: --nat needs --stages netfilter, which sees "
			 "connection tracking", command);
		return EXIT_USAGE;
	}
	if (o->config.nat && !o->config.port && !o->config.addr && !o->filter) {
		complain("%s: --nat is for --port, --addr and --filter",
			 command);
		return EXIT_USAGE;
	}
	if (!o->config.stage_groups || o->config.sample)
		return 0;
	complain("%s: --stage%s needs --sample: sampling bursts attach "
		 "tracepoints only", command, o->stages ? "s" : "");
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
