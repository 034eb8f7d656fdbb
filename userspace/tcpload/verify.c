// SPDX-License-Identifier: GPL-2.0-only
/*
 * The bytes of a bulk transfer, compared at its receiver.  Every write is the
 * beginning of one pattern, so that a byte's place in the stream decides its
 * value.
 */
#include "transfer.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

void verify_fill(char *buf, size_t size)
{
	size_t i;

	/* No period: data that moved by any distance differs. */
	for (i = 0; i < size; i++)
		buf[i] = (uint32_t)i * 2654435761U >> 24;
}

size_t verify_compare(const char *buf, size_t n, size_t write_size)
{
	static unsigned long long place;
	static char *pattern;
	size_t some, i, wrong = 0;

	if (!pattern) {
		pattern = malloc(write_size);
		if (!pattern)
			err(1, "no memory for one write");
		verify_fill(pattern, write_size);
	}
	for (; n; n -= some, buf += some, place += some) {
		const char *want = pattern + place % write_size;

		some = write_size - place % write_size;
		if (some > n)
			some = n;
		if (!memcmp(buf, want, some))
			continue;
		for (i = 0; i < some; i++)
			wrong += buf[i] != want[i];
	}
	return wrong;
}
