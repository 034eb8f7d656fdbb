// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names for the numbers that the kernel gave to devices, network namespaces and
 * cgroups.  Each is looked up once: a live view asks every interval.
 */
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "kernel/places.h"

#define KEPT	256		/* names; beyond that they are looked up again */
#define CGROUPS	"/sys/fs/cgroup"

struct name {
	uint64_t id;
	uint32_t netns;		/* of a device */
	char text[128];
};

struct names {
	struct name list[KEPT];
	size_t n;
};

static struct names devices, namespaces, cgroups;

static struct name *find(struct names *names, uint64_t id, uint32_t netns)
{
	size_t i;

	for (i = 0; i < names->n; i++)
		if (names->list[i].id == id && names->list[i].netns == netns)
			return &names->list[i];
	return NULL;
}

/* A place for a new name; the last one is used again when all are. */
static struct name *add(struct names *names, uint64_t id, uint32_t netns)
{
	struct name *name;

	if (names->n < KEPT)
		names->n++;
	name = &names->list[names->n - 1];
	*name = (struct name){ .id = id, .netns = netns };
	return name;
}

static uint32_t inode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : st.st_ino;
}

/* "here", the name of ip-netns, or nothing. */
static const char *name_netns(uint32_t id)
{
	struct name *name = find(&namespaces, id, 0);
	char path[300];
	struct dirent *e;
	DIR *dir;

	if (name)
		return name->text;
	name = add(&namespaces, id, 0);
	if (id == inode_of("/proc/self/ns/net")) {
		strcpy(name->text, "here");
		return name->text;
	}
	dir = opendir("/run/netns");
	while (dir && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/run/netns/%s", e->d_name);
		if (inode_of(path) == id)
			snprintf(name->text, sizeof(name->text), "%.40s",
				 e->d_name);
	}
	if (dir)
		closedir(dir);
	return name->text;
}

/* The name of an interface of a namespace of ip-netns. */
static void name_there(const char *netns, uint32_t ifindex, char *out)
{
	int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
	char path[128];
	int there;

	snprintf(path, sizeof(path), "/run/netns/%s", netns);
	there = open(path, O_RDONLY | O_CLOEXEC);
	if (home >= 0 && there >= 0 && !setns(there, CLONE_NEWNET)) {
		if (!if_indextoname(ifindex, out))
			*out = 0;
		if (setns(home, CLONE_NEWNET))
			abort(); /* nothing that follows would be of this host */
	}
	if (home >= 0)
		close(home);
	if (there >= 0)
		close(there);
}

static const char *name_device(uint32_t ifindex, uint32_t netns)
{
	struct name *name = find(&devices, ifindex, netns);
	const char *where;
	char text[IF_NAMESIZE] = "";

	if (name)
		return name->text;
	where = name_netns(netns);
	name = add(&devices, ifindex, netns);
	if (!strcmp(where, "here")) {
		if (if_indextoname(ifindex, text))
			strcpy(name->text, text);
	} else if (*where) {
		name_there(where, ifindex, text);
		if (*text)
			snprintf(name->text, sizeof(name->text), "%s@%.30s",
				 text, where);
	}
	return name->text;
}

/* The number of a cgroup v2 is that of its directory. */
static struct name *wanted;

static int visit(const char *path, const struct stat *st, int type,
		 struct FTW *at)
{
	(void)at;
	if (type != FTW_D || st->st_ino != wanted->id)
		return 0;
	snprintf(wanted->text, sizeof(wanted->text), "%.120s",
		 path[strlen(CGROUPS)] ? path + strlen(CGROUPS) : "/");
	return 1;
}

static const char *name_cgroup(uint64_t id)
{
	struct name *name = find(&cgroups, id, 0);

	if (name)
		return name->text;
	wanted = add(&cgroups, id, 0);
	nftw(CGROUPS, visit, 8, FTW_PHYS | FTW_MOUNT);
	return wanted->text;
}

void places__name(struct profile *p)
{
	struct profile_group *g;
	size_t i;

	for (i = 0; i < p->ngroups; i++) {
		g = &p->groups[i];
		if (g->key.netns)
			snprintf(g->netns, sizeof(g->netns), "%.47s",
				 name_netns(g->key.netns));
		if (g->key.ifindex)
			snprintf(g->device, sizeof(g->device), "%.47s",
				 name_device(g->key.ifindex, g->key.netns));
		if (g->key.cgroup)
			snprintf(g->cgroup, sizeof(g->cgroup), "%.127s",
				 name_cgroup(g->key.cgroup));
	}
}
