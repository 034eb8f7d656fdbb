// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which timer the kernel runs for a socket, from /proc/net/tcp
 * (Documentation/networking/proc_net_tcp.rst in the kernel's source).
 */
#include <stdio.h>
#include <string.h>

#include "pattern.h"

/* Their numbers in that table. */
enum { RETRANSMISSION = 1, PROBE = 4 };

/*
 * Call use() with the line of each end until it returns true.  Only in the table
 * of the flow's family: the other one may have an earlier connection, from the
 * same port, in TIME_WAIT.
 */
static void each_line(const struct flow *f,
		      bool (*use)(const struct flow *f, const char *line,
				  void *arg), void *arg)
{
	bool ipv6 = strchr(pattern.address[f->address], ':');
	FILE *table = fopen(ipv6 ? "/proc/thread-self/net/tcp6" :
				   "/proc/thread-self/net/tcp", "re");
	char line[512], port[8];

	if (!table)
		return;
	snprintf(port, sizeof(port), ":%04X ", f->port);
	while (fgets(line, sizeof(line), table))
		if (strstr(line, port) && use(f, line, arg))
			break;
	fclose(table);
}

static bool show_line(const struct flow *f, const char *line, void *arg)
{
	(void)f;
	(void)arg;
	fprintf(stderr, "  %s", line);
	return false;
}

void timer_show(const struct flow *f)
{
	enter_netns(pattern.to);
	each_line(f, show_line, NULL);
	enter_netns(pattern.from);
	if (pattern.from)
		each_line(f, show_line, NULL);
}

struct wanted {
	int end;
	struct timer timer;
};

static bool read_line(const struct flow *f, const char *line, void *arg)
{
	unsigned int local, remote, kind;
	struct wanted *w = arg;
	unsigned long ticks;

	if (sscanf(line, "%*d: %*[0-9A-F]:%x %*[0-9A-F]:%x %*x %*x:%*x %x:%lx",
		   &local, &remote, &kind, &ticks) != 4 ||
	    (w->end == CLIENT ? local : remote) != f->port)
		return false;
	w->timer.retransmission = kind == RETRANSMISSION;
	w->timer.probe = kind == PROBE;
	w->timer.overdue = !ticks;
	return true;
}

struct timer timer_of(const struct flow *f, int end)
{
	struct wanted w = { .end = end };

	enter_netns(end == CLIENT ? pattern.from : pattern.to);
	each_line(f, read_line, &w);
	enter_netns(pattern.from);
	return w.timer;
}
