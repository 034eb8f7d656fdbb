// SPDX-License-Identifier: GPL-2.0-only
/*
 * Window arithmetic of kmod/window.h in user space: the numbers of the SC2003
 * paper (section 3.5.1) exactly, then the invariants on random arguments.  The
 * cases are in window_cases.h; tests/kunit runs them inside a kernel.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef uint32_t u32;
typedef uint64_t u64;

#include "../../../kmod/window.h"
#include "window_cases.h"

#define ROUNDS 2000000

#define COUNT(name, got, wanted) + 1
#define ROWS(X) WINDOW_PAPER(X) WINDOW_SENDER(X) WINDOW_PAIRED(X) \
	WINDOW_UNSCALED(X) WINDOW_RECEIVER(X) WINDOW_SEEN(X) WINDOW_STEPS(X)
#define PROPERTIES (sizeof(window_properties) / sizeof(window_properties[0]))

static int cases, failures;

static void report(const char *name, bool passed)
{
	printf("%sok %d %s\n", passed ? "" : "not ", ++cases, name);
	failures += !passed;
}

static void row(const char *name, u32 got, u32 wanted)
{
	if (got != wanted)
		printf("# got %u, wanted %u\n", got, wanted);
	report(name, got == wanted);
}

static bool holds(const struct window_property *property)
{
	struct window_args args;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		property->draw(&args);
		if (!property->holds(&args)) {
			printf("# " WINDOW_ARGS "\n", WINDOW_ARGS_OF(&args));
			return false;
		}
	}
	return true;
}

int main(void)
{
	unsigned int i;

	printf("KTAP version 1\n1..%d\n", (int)(0 ROWS(COUNT) + PROPERTIES));
#define ROW(name, got, wanted) row(name, got, wanted);
	ROWS(ROW)
	for (i = 0; i < PROPERTIES; i++)
		report(window_properties[i].name, holds(&window_properties[i]));
	return !!failures;
}
