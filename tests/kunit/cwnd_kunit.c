// SPDX-License-Identifier: GPL-2.0-only
/*
 * KUnit suite for kmod/cwnd.h: the cases of tests/unit/kmod/cwnd_cases.h, compiled
 * and run as kernel code.  What needs floating point stays with
 * tests/unit/kmod/test_cwnd.c.
 */
#include <kunit/test.h>

#include "cwnd.h"
#include "window.h"
#include "cwnd_cases.h"

#define ROUNDS 20000

#define EXPECT(name, got, wanted) \
	KUNIT_EXPECT_EQ_MSG(test, (u64)(got), (u64)(wanted), name);

static void cwnd_counted(struct kunit *test)
{
	CWND_COUNTED(EXPECT)
}

static void cwnd_slow_starts(struct kunit *test)
{
	CWND_SLOW_START(EXPECT)
}

static void cwnd_reduced(struct kunit *test)
{
	CWND_REDUCED(EXPECT)
}

static void cwnd_limits(struct kunit *test)
{
	CWND_LIMITS(EXPECT)
}

static void cwnd_curve(struct kunit *test)
{
	const struct cwnd_point *p;

	for (p = cwnd_points; p < cwnd_points + CWND_POINTS; p++) {
		struct mssfrac_curve curve = cwnd_curve_of(p);

		KUNIT_EXPECT_EQ(test, curve.k_ms, p->k_ms);
		KUNIT_EXPECT_EQ(test,
				mssfrac_curve_at(&curve, p->mss, p->rtt_us),
				p->at);
	}
}

static void cwnd_describe(const struct cwnd_property *property, char *text)
{
	strscpy(text, property->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(cwnd, cwnd_properties, cwnd_describe);

static void cwnd_property(struct kunit *test)
{
	const struct cwnd_property *property = test->param_value;
	struct cwnd_args args = {};
	int i;

	for (i = 0; i < ROUNDS; i++) {
		if (!property->holds(&args)) {
			KUNIT_FAIL(test, CWND_ARGS, CWND_ARGS_OF(&args));
			return;
		}
		cond_resched();
	}
}

static struct kunit_case cwnd_kunit_cases[] = {
	KUNIT_CASE(cwnd_counted),
	KUNIT_CASE(cwnd_slow_starts),
	KUNIT_CASE(cwnd_reduced),
	KUNIT_CASE(cwnd_limits),
	KUNIT_CASE(cwnd_curve),
	KUNIT_CASE_PARAM(cwnd_property, cwnd_gen_params),
	{}
};

static struct kunit_suite cwnd_kunit_suite = {
	.name = "mssfrac_cwnd",
	.test_cases = cwnd_kunit_cases,
};

kunit_test_suite(cwnd_kunit_suite);
