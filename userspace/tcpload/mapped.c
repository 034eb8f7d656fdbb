// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receive without a copy: TCP_ZEROCOPY_RECEIVE maps the pages that the device
 * wrote.  Only payload that fills whole pages can be mapped.
 */
#include "transfer.h"

#include <err.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAPPED_MOST	(1 << 19)

static void *window;

void mapped_end(void)
{
	if (window)
		munmap(window, MAPPED_MOST);
}

ssize_t receive_mapped(int fd, char *buf, size_t size,
		       unsigned long long *mapped)
{
	struct tcp_zerocopy_receive zc = { .length = MAPPED_MOST };
	struct pollfd data = { .fd = fd, .events = POLLIN };
	socklen_t len = sizeof(zc);
	ssize_t n = 0;

	if (!window) {
		window = mmap(NULL, MAPPED_MOST, PROT_READ, MAP_SHARED, fd, 0);
		if (window == MAP_FAILED)
			err(1, "this kernel cannot map received data");
	}
	if (poll(&data, 1, -1) < 0)
		err(1, "poll");
	/* The pages mapped before are released by the call. */
	zc.address = (uintptr_t)window;
	if (getsockopt(fd, IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE, &zc, &len)) {
		if (errno == EIO) /* the end of the stream */
			return 0;
		err(1, "TCP_ZEROCOPY_RECEIVE");
	}
	*mapped += zc.length;
	/* What comes before the next whole page, or is all that there is. */
	if (zc.recv_skip_hint || !zc.length) {
		if (zc.recv_skip_hint && zc.recv_skip_hint < size)
			size = zc.recv_skip_hint;
		n = read(fd, buf, size);
		if (n < 0)
			err(1, "read");
	}
	return zc.length + n;
}
