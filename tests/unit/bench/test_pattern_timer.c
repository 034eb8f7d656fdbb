// SPDX-License-Identifier: GPL-2.0-only
/*
 * The timer of a connection (tcpload/pattern-timer.c): read in the table of its
 * family, though an earlier connection of the other family, from the same port,
 * is in TIME_WAIT.
 */
#include <errno.h>
#include <err.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../../userspace/tcpload/pattern-timer.c"

struct pattern pattern = { .address = { "127.0.0.1", "::1" } };
static int cases, failed;

void enter_netns(const char *name)
{
	(void)name;
}

static void expect(int ok, const char *what)
{
	printf("%sok %d %s\n", ok ? "" : "not ", ++cases, what);
	failed += !ok;
}

static socklen_t loopback(struct sockaddr_storage *ss, int family, int port)
{
	struct sockaddr_in *v4 = (void *)ss;
	struct sockaddr_in6 *v6 = (void *)ss;

	memset(ss, 0, sizeof(*ss));
	ss->ss_family = family;
	v4->sin_port = htons(port);	/* at the same place in both */
	if (family == AF_INET6) {
		v6->sin6_addr = in6addr_loopback;
		return sizeof(*v6);
	}
	v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sizeof(*v4);
}

/*
 * A connection from @port (0: any), which it then has; fd[0] opened it.  False:
 * another program uses that port in this family.
 */
static int connection(int family, int *port, int fd[2])
{
	int listener = socket(family, SOCK_STREAM, 0), one = 1;
	struct sockaddr_storage ss;
	socklen_t len = loopback(&ss, family, 0);

	if (bind(listener, (void *)&ss, len) || listen(listener, 1) ||
	    getsockname(listener, (void *)&ss, &len))
		err(1, "listener");
	fd[0] = socket(family, SOCK_STREAM, 0);
	setsockopt(fd[0], SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (*port) {
		struct sockaddr_storage own;

		if (bind(fd[0], (void *)&own, loopback(&own, family, *port))) {
			if (errno != EADDRINUSE)
				err(1, "bind");
			close(fd[0]);
			close(listener);
			return 0;
		}
	}
	if (connect(fd[0], (void *)&ss, len))
		err(1, "connect");
	fd[1] = accept(listener, NULL, NULL);
	close(listener);
	getsockname(fd[0], (void *)&ss, &len);
	*port = ntohs(((struct sockaddr_in *)&ss)->sin_port);
	return 1;
}

/* Until the peer's window is full: the probe timer runs. */
static void fill(int fd)
{
	char data[65536] = "";
	int idle = 0;

	fcntl(fd, F_SETFL, O_NONBLOCK);
	while (idle < 10)
		if (write(fd, data, sizeof(data)) <= 0) {
			usleep(10000);
			idle++;
		}
}

static void families(int first, int second, const char *what)
{
	struct flow f = { .address = second == AF_INET6 };
	int old[2], now[2], port, tries = 0;
	struct timer timer;

	do {
		if (tries++ == 20)
			errx(1, "no port is free in both families");
		port = 0;
		connection(first, &port, old);
		close(old[0]);	/* closed first: in TIME_WAIT */
		usleep(10000);
		close(old[1]);
	} while (!connection(second, &port, now));
	f.port = port;
	fill(now[0]);
	timer = timer_of(&f, CLIENT);
	expect(timer.probe && !timer.retransmission, what);
	close(now[0]);
	close(now[1]);
}

int main(void)
{
	printf("KTAP version 1\n1..2\n");
	families(AF_INET, AF_INET6, "IPv6, after IPv4 from the same port");
	families(AF_INET6, AF_INET, "IPv4, after IPv6 from the same port");
	return failed != 0;
}
