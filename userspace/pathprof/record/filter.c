// SPDX-License-Identifier: GPL-2.0-only
/*
 * Turns the filter options of record and top into a session's configuration:
 * numbers of interfaces, namespaces and cgroups, address and prefix length, the
 * settings that decide mssfrac's arms, and an expression in pcap syntax.
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
#include "record/filter.h"
#include "record/pcap-filter.h"

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

static int settle_dir(struct record_options *o, const char *command)
{
	if (!o->dir)
		return 0;
	o->config.dir = !strcmp(o->dir, "rx") ? DIR_RX :
			!strcmp(o->dir, "tx") ? DIR_TX : DIR_ANY;
	if (o->config.dir)
		return 0;
	complain("%s: --dir takes rx or tx, not \"%s\"", command, o->dir);
	return EXIT_USAGE;
}

static int settle_dev(struct record_options *o, const char *command)
{
	if (!o->dev)
		return 0;
	o->config.ifindex = if_nametoindex(o->dev);
	if (o->config.ifindex)
		return 0;
	complain("%s: no interface \"%s\" here", command, o->dev);
	return EXIT_FAILED;
}

/* The file of a namespace: a name of ip-netns, or a path. */
static const char *netns_file(const char *name)
{
	static char path[300];

	snprintf(path, sizeof(path), "%s%.250s",
		 strchr(name, '/') ? "" : "/run/netns/", name);
	return path;
}

static int settle_netns(struct record_options *o, const char *command)
{
	struct stat st;

	if (!o->netns)
		return 0;
	if (stat(netns_file(o->netns), &st)) {
		complain("%s: no network namespace %s: %s", command,
			 netns_file(o->netns), strerror(errno));
		return EXIT_FAILED;
	}
	o->config.netns = st.st_ino;
	return 0;
}

/* PATH as it is, or below the usual mount point of cgroup v2. */
static int settle_cgroup(struct record_options *o, const char *command)
{
	char path[PATH_MAX];
	struct statfs fs;
	struct stat st;

	if (!o->cgroup)
		return 0;
	snprintf(path, sizeof(path), "%s%s",
		 *o->cgroup == '/' ? "" : "/sys/fs/cgroup/", o->cgroup);
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
	o->config.cgroup = st.st_ino;
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
static int settle_arm(struct record_options *o, const char *command)
{
	struct stat st;
	int rc;

	if (!o->arm)
		return 0;
	o->config.arm = arm_of(o->arm);
	if (!o->config.arm) {
		complain("%s: --arm takes stock (or control, 0) or treated "
			 "(or treatment, 1), not \"%s\"", command, o->arm);
		return EXIT_USAGE;
	}
	if (o->config.udp) {
		complain("%s: --arm or --udp, not both: mssfrac only acts on "
			 "TCP", command);
		return EXIT_USAGE;
	}
	if (!o->netns && !stat("/proc/self/ns/net", &st))
		o->config.netns = st.st_ino;
	rc = o->netns ? read_settings_of(o->netns, &o->config) :
	     read_settings(&o->config);
	if (!rc)
		return 0;
	complain(rc == -ENOENT ? "%s: --arm needs mssfrac: no "
		 "net.mssfrac settings in this network namespace (%s)" :
		 "%s: cannot read the net.mssfrac settings of the network "
		 "namespace: %s", command, strerror(-rc));
	return EXIT_UNSUPPORTED;
}

static int settle_pcap(struct record_options *o, const char *command)
{
	static struct pcap_insn insns[PCAP_INSNS];
	char err[300];
	int n;

	if (!o->filter)
		return 0;
	n = pcap_filter__compile(o->filter, insns, err, sizeof(err));
	if (n < 0) {
		complain("%s: --filter \"%s\": %s", command, o->filter, err);
		return EXIT_USAGE;
	}
	o->config.pcap = insns;
	o->config.npcap = n;
	return 0;
}

/* The filters other than port and address, for the profile's head. */
static void describe(struct record_options *o)
{
	const struct {
		const char *name, *word;
	} asked[] = {
		{ "stages", o->stages }, { "dir", o->dir }, { "dev", o->dev },
		{ "netns", o->netns },
		{ "cgroup", o->cgroup }, { "arm", o->arm },
		{ "filter", o->filter }, { "stage", o->functions },
		{ "nat", o->config.nat ? "too" : NULL },
	};
	size_t i, at = 0, size = sizeof(o->config.filter);

	for (i = 0; i < sizeof(asked) / sizeof(asked[0]); i++)
		if (asked[i].word && at < size)
			at += snprintf(o->config.filter + at, size - at,
				       "%s%s %s", at ? "  " : "",
				       asked[i].name, asked[i].word);
}

int filter__settle(struct record_options *o, const char *command)
{
	int rc = settle_dir(o, command);

	if (!rc)
		rc = settle_dev(o, command);
	if (rc)
		return rc;
	settle_addr(&o->config);
	describe(o);
	rc = settle_pcap(o, command);
	if (!rc)
		rc = settle_netns(o, command);
	if (!rc)
		rc = settle_cgroup(o, command);
	return rc ? rc : settle_arm(o, command);
}
