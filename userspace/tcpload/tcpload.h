/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all commands of tcpload share: the description of options (options.c),
 * clocks, namespaces and sockets (common.c), and the commands themselves.
 */
#ifndef TCPLOAD_H
#define TCPLOAD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define EXIT_USAGE	2
#define NSEC_PER_USEC	1000ULL
#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL

/* --- options.c ----------------------------------------------------------- */

/*
 * One option.  It sets one of @number, @word and @flag, or calls @take.  The
 * value before parsing is the default; the help prints it with the range.
 */
struct option_spec {
	const char *name, *value, *help;
	long *number;
	long min, max;
	long unit;		/* stored: number times unit; 0 means 1 */
	const char **word;
	bool *flag;
	void (*take)(const char *text);
};

#define NUMBER(variable, least, most) \
	.number = &(variable), .min = least, .max = most
#define TIME(variable, least, most, ns) \
	NUMBER(variable, least, most), .unit = ns

struct command {
	const char *name, *about;	/* about: sentences; --help lists the first */
	const struct option_spec *options;	/* the last has no name */
	int (*run)(const void *load);
	const void *load;	/* for run() */
};

/* Read argv[1] and later; ends the program after --help or an error. */
void options_parse(const struct command *command, int argc, char **argv);

/* --- common.c ------------------------------------------------------------ */

/* CLOCK_MONOTONIC, ns. */
uint64_t now(void);

/*
 * Enter a network namespace by its name below /run/netns.  NULL: return to the
 * namespace that the program started in.
 */
void enter_netns(const char *name);

/* NULL: any IPv4 address. */
socklen_t address_of(const char *address, long port,
		     struct sockaddr_storage *ss);

/*
 * A socket bound to that address; it listens if @backlog is set, and has
 * SO_RCVBUF set if @rcvbuf is.
 */
int bound_socket(const char *address, long port, int type, long rcvbuf,
		 int backlog);

void set_option(int fd, int level, int name, int value);

struct tcp_info;
bool read_tcp_info(int fd, struct tcp_info *info);

/* Wait at least that long, even if a signal arrives. */
void pause_us(long us);

/*
 * Read the error queue of a socket that sends with MSG_ZEROCOPY.  Adds the
 * number of sends that were copied after all to @copied, of the others to
 * @unpinned, if these are not NULL.
 */
void reap_zerocopy(int fd, unsigned int *unpinned, unsigned int *copied);

/* Fails if standard output took not all of it. */
int finish_output(void);

/* --- Commands ------------------------------------------------------------ */

extern const struct command bulk_command, request_command, bursts_command,
	pingpong_command, churn_command, datagrams_command, rounds_command,
	pattern_command;

#endif /* TCPLOAD_H */
