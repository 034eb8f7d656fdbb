// SPDX-License-Identifier: GPL-2.0-only
/*
 * Turns the options that choose packets into a session's configuration: numbers
 * of interfaces, namespaces and cgroups, address and prefix length, and the
 * settings that decide mssfrac's arms.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "choose.h"
#include "groups.h"
#include "pcap-filter.h"

/* "ADDR/BITS" to both; the text was checked when it was read. */
static void settle_addr(struct session_config *config)
{
	static char addr[INET6_ADDRSTRLEN];
	const char *slash;

	if (!config->addr)
		return;
	slash = strchr(config->addr, '/');
	snprintf(addr, sizeof(addr), "%.*s",
		 slash ? (int)(slash - config->addr) : 45, config->addr);
	config->addr = addr;
	config->prefix = slash ? atoi(slash + 1) :
			 strchr(addr, ':') ? 128 : 32;
}

static int settle_dir(struct choice *c, const char *command)
{
	if (!c->dir)
		return 0;
	c->config.dir = !strcmp(c->dir, "rx") ? DIR_RX :
			!strcmp(c->dir, "tx") ? DIR_TX : DIR_ANY;
	if (c->config.dir)
		return 0;
	complain("%s: --dir takes rx or tx, not \"%s\"", command, c->dir);
	return EXIT_USAGE;
}

/* The file of a namespace: a name of ip-netns, or a path. */
static const char *netns_file(const char *name)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s%.250s",
		 strchr(name, '/') ? "" : "/run/netns/", name);
	return path;
}

static int settle_netns(struct choice *c, const char *command)
{
	struct stat st;

	if (!c->netns)
		return 0;
	if (stat(netns_file(c->netns), &st)) {
		complain("%s: no network namespace %s: %s", command,
			 netns_file(c->netns), strerror(errno));
		return EXIT_FAILED;
	}
	c->config.netns = st.st_ino;
	return 0;
}

/* PATH as it is, or below the usual mount point of cgroup v2. */
static int settle_cgroup(struct choice *c, const char *command)
{
	char path[PATH_MAX];
	struct statfs fs;
	struct stat st;

	if (!c->cgroup)
		return 0;
	snprintf(path, sizeof(path), "%s%s",
		 *c->cgroup == '/' ? "" : "/sys/fs/cgroup/", c->cgroup);
	if (stat(path, &st) || statfs(path, &fs)) {
		complain("%s: no cgroup %s: %s", command, path,
			 strerror(errno));
		return EXIT_FAILED;
	}
	if (fs.f_type != CGROUP2_SUPER_MAGIC || !S_ISDIR(st.st_mode)) {
		complain("%s: %s is no cgroup v2, which is a directory of "
			 "a cgroup2 file system", command, path);
		return EXIT_USAGE;
	}
	c->config.cgroup = st.st_ino;
	return 0;
}

/* A setting of mssfrac in the namespace this thread is in. */
static int read_setting(const char *name, uint32_t *value)
{
	char path[64];
	FILE *f;
	int rc;

	snprintf(path, sizeof(path), "/proc/sys/net/mssfrac/%s", name);
	f = fopen(path, "re");
	if (!f)
		return -errno;
	rc = fscanf(f, "%u", value) == 1 ? 0 : -EIO;
	fclose(f);
	return rc;
}

static int read_settings(struct session_config *config)
{
	int rc = read_setting("ab_seed", &config->arm_seed);

	if (!rc)
		rc = read_setting("ab_mark", &config->arm_mark);
	return rc ? rc : read_setting("ab_percent", &config->arm_percent);
}

/* The same in another namespace. */
static int read_settings_of(const char *netns, struct session_config *config)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	int away = open(netns_file(netns), O_RDONLY | O_CLOEXEC);
	int rc;

	if (home < 0 || away < 0 || setns(away, CLONE_NEWNET)) {
		rc = -errno;
	} else {
		rc = read_settings(config);
		if (setns(home, CLONE_NEWNET))
			rc = -errno;
	}
	close(home);
	close(away);
	return rc;
}

static unsigned int arm_of(const char *word)
{
	static const char *const words[][3] = {
		[ARM_STOCK] = { "stock", "control", "0" },
		[ARM_TREATED] = { "treated", "treatment", "1" },
	};
	unsigned int arm, i;

	for (arm = ARM_STOCK; arm <= ARM_TREATED; arm++)
		for (i = 0; i < 3; i++)
			if (!strcmp(word, words[arm][i]))
				return arm;
	return ARM_ANY;
}

/* Each namespace has its own settings, and so its own arms. */
static int settle_arm(struct choice *c, const char *command)
{
	struct stat st;
	int rc;

	if (!c->arm)
		return 0;
	c->config.arm = arm_of(c->arm);
	if (!c->config.arm) {
		complain("%s: --arm takes stock (or control, 0) or treated "
			 "(or treatment, 1), not \"%s\"", command, c->arm);
		return EXIT_USAGE;
	}
	if (c->config.udp) {
		complain("%s: --arm or --udp, not both: mssfrac only acts on "
			 "TCP", command);
		return EXIT_USAGE;
	}
	if (!c->netns && !stat("/proc/self/ns/net", &st))
		c->config.netns = st.st_ino;
	rc = c->netns ? read_settings_of(c->netns, &c->config) :
	     read_settings(&c->config);
	if (!rc)
		return 0;
	complain(rc == -ENOENT ? "%s: --arm needs mssfrac: no "
		 "net.mssfrac settings in this network namespace (%s)" :
		 "%s: cannot read the net.mssfrac settings of the network "
		 "namespace: %s", command, strerror(-rc));
	return EXIT_UNSUPPORTED;
}

static int settle_filter(struct choice *c, const char *command)
{
	static struct pcap_insn insns[PCAP_INSNS];
	char err[300];
	int n;

	if (!c->filter)
		return 0;
	n = pcap_filter__compile(c->filter, insns, err, sizeof(err));
	if (n < 0) {
		complain("%s: --filter \"%s\": %s", command, c->filter, err);
		return EXIT_USAGE;
	}
	c->config.pcap = insns;
	c->config.npcap = n;
	return 0;
}

/* The filters other than port and address, for the profile's head. */
static void describe(struct choice *c)
{
	const struct {
		const char *name, *word;
	} asked[] = {
		{ "stages", c->stages }, { "dir", c->dir }, { "dev", c->dev },
		{ "netns", c->netns },
		{ "cgroup", c->cgroup }, { "arm", c->arm },
		{ "filter", c->filter },
	};
	size_t i, at = 0, size = sizeof(c->config.filter);

	for (i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
		if (asked[i].word && at < size)
			at += snprintf(c->config.filter + at, size - at,
				       "%s%s %s", at ? "  " : "",
				       asked[i].name, asked[i].word);
}

static int settle_stages(struct choice *c, const char *command)
{
	char err[160];

	if (!c->stages)
		return 0;
	c->config.stage_groups = groups__read(c->stages, err, sizeof(err));
	if (!c->config.stage_groups) {
		complain("%s: --stages: %s", command, err);
		return EXIT_USAGE;
	}
	if (c->config.sample)
		return 0;
	complain("%s: --stages needs --sample: sampling bursts attach "
		 "tracepoints only", command);
	return EXIT_USAGE;
}

int choice__settle(struct choice *c, const char *command)
{
	int rc = settle_dir(c, command);

	if (!rc)
		rc = settle_stages(c, command);
	if (rc)
		return rc;
	if (c->config.sample && c->config.budget) {
		complain("%s: --sample or --budget, not both", command);
		return EXIT_USAGE;
	}
	if (c->config.fine && !c->config.sample) {
		complain("%s: --fine needs --sample: sampling "
			 "bursts attach tracepoints only", command);
		return EXIT_USAGE;
	}
	if (c->cgroup && c->config.udp && !c->config.sample) {
		complain("%s: --cgroup with --udp needs --sample: sampling "
			 "bursts do not see the socket of a datagram", command);
		return EXIT_USAGE;
	}
	if (!c->config.sample && !c->config.budget)
		c->config.budget = CHOICE_BUDGET;
	if (c->config.budget)
		c->config.stage_times = true;
	if (c->dev) {
		c->config.ifindex = if_nametoindex(c->dev);
		if (!c->config.ifindex) {
			complain("%s: no interface \"%s\" here", command,
				 c->dev);
			return EXIT_FAILED;
		}
	}
	settle_addr(&c->config);
	describe(c);
	rc = settle_filter(c, command);
	if (!rc)
		rc = settle_netns(c, command);
	if (!rc)
		rc = settle_cgroup(c, command);
	return rc ? rc : settle_arm(c, command);
}
