// SPDX-License-Identifier: GPL-2.0-only
/* Clocks, namespaces and sockets; knows no command. */
#define _GNU_SOURCE
#include "tcpload.h"

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/errqueue.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

void enter_netns(const char *name)
{
	static int home = -1;
	char path[PATH_MAX];
	int fd;

	if (!name) {
		if (home >= 0 && setns(home, CLONE_NEWNET))
			err(1, "cannot return to the first network namespace");
		return;
	}
	if (home < 0)
		home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (home < 0 || fd < 0)
		err(1, "no network namespace %s", name);
	if (setns(fd, CLONE_NEWNET))
		err(1, "cannot enter network namespace %s", name);
	close(fd);
}

socklen_t address_of(const char *address, long port,
		     struct sockaddr_storage *ss)
{
	struct sockaddr_in *in = (struct sockaddr_in *)ss;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)ss;

	memset(ss, 0, sizeof(*ss));
	if (!address || inet_pton(AF_INET, address, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		return sizeof(*in);
	}
	if (inet_pton(AF_INET6, address, &in6->sin6_addr) == 1) {
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
		return sizeof(*in6);
	}
	errx(EXIT_USAGE, "%s is not an IPv4 or IPv6 address", address);
}

void set_option(int fd, int level, int name, int value)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		err(1, "cannot set socket option %d of level %d to %d", name,
		    level, value);
}

int bound_socket(const char *address, long port, int type, long rcvbuf,
		 int backlog)
{
	struct sockaddr_storage ss;
	socklen_t len = address_of(address, port, &ss);
	int fd;

	fd = socket(ss.ss_family, type | SOCK_CLOEXEC, 0);
	if (fd < 0)
		err(1, "socket");
	set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (rcvbuf)
		set_option(fd, SOL_SOCKET, SO_RCVBUF, rcvbuf);
	if (bind(fd, (struct sockaddr *)&ss, len))
		err(1, "cannot bind %s port %ld", address ? address : "0.0.0.0",
		    port);
	if (backlog && listen(fd, backlog))
		err(1, "listen");
	return fd;
}

bool read_tcp_info(int fd, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, len);
	return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len);
}

void pause_us(long us)
{
	struct timespec t = { us / 1000000, us % 1000000 * 1000 };

	while (nanosleep(&t, &t) && errno == EINTR)
		;
}

void reap_zerocopy(int fd, unsigned int *unpinned, unsigned int *copied)
{
	const struct sock_extended_err *note;
	const struct cmsghdr *part;
	unsigned int *count;
	char control[128];
	struct msghdr msg;

	for (;;) {
		msg = (struct msghdr){ .msg_control = control,
				       .msg_controllen = sizeof(control) };
		if (recvmsg(fd, &msg, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			return;
		part = CMSG_FIRSTHDR(&msg);
		if (!part)
			continue;
		/* One note may stand for many sends. */
		note = (const void *)CMSG_DATA(part);
		count = note->ee_code & SO_EE_CODE_ZEROCOPY_COPIED ? copied :
								     unpinned;
		if (count && note->ee_origin == SO_EE_ORIGIN_ZEROCOPY)
			*count += note->ee_data - note->ee_info + 1;
	}
}

int finish_output(void)
{
	if (fflush(stdout) || ferror(stdout))
		err(1, "standard output");
	return 0;
}
