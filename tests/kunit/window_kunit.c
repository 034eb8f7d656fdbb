// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite for kmod/window.h: the cases of tests/unit/kmod/window_cases.h,
 * compiled and run as kernel code, with the kernel's types, flags and sanitizers.
 */
#include <kunit/test.h>
#include <linux/module.h>

#include "window.h"
#include "window_cases.h"

#define ROUNDS 100000

#define EXPECT(name, got, wanted) \
	KUNIT_EXPECT_EQ_MSG(test, (u32)(got), (u32)(wanted), name);

static void window_paper(struct kunit *test)
{
	WINDOW_PAPER(EXPECT)
}

static void window_sender(struct kunit *test)
{
	WINDOW_SENDER(EXPECT)
}

static void window_paired(struct kunit *test)
{
	WINDOW_PAIRED(EXPECT)
}

static void window_receiver(struct kunit *test)
{
	WINDOW_UNSCALED(EXPECT)
	WINDOW_RECEIVER(EXPECT)
}

static void window_seen(struct kunit *test)
{
	WINDOW_SEEN(EXPECT)
}

static void window_steps(struct kunit *test)
{
	WINDOW_STEPS(EXPECT)
}

static void window_describe(const struct window_property *property, char *text)
{
	strscpy(text, property->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(window, window_properties, window_describe);

static void window_property(struct kunit *test)
{
	const struct window_property *property = test->param_value;
	struct window_args args;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		property->draw(&args);
		if (!property->holds(&args)) {
			KUNIT_FAIL(test, WINDOW_ARGS, WINDOW_ARGS_OF(&args));
			return;
		}
		cond_resched();
	}
}

static struct kunit_case window_kunit_cases[] = {
	KUNIT_CASE(window_paper),
	KUNIT_CASE(window_sender),
	KUNIT_CASE(window_paired),
	KUNIT_CASE(window_receiver),
	KUNIT_CASE(window_seen),
	KUNIT_CASE(window_steps),
	KUNIT_CASE_PARAM(window_property, window_gen_params),
	{}
};

static struct kunit_suite window_kunit_suite = {
	.name = "mssfrac_window",
	.test_cases = window_kunit_cases,
};

kunit_test_suite(window_kunit_suite);

MODULE_DESCRIPTION("KUnit tests of mssfrac's arithmetic");
MODULE_LICENSE("GPL");
