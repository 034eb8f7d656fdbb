# SPDX-License-Identifier: GPL-2.0
"""The four verdicts, and the fewest pairs that carry one."""

IMPROVED, REGRESSED = "improved", "regressed"
EQUIVALENT, INCONCLUSIVE = "equivalent", "inconclusive"
ALL = (IMPROVED, REGRESSED, EQUIVALENT, INCONCLUSIVE)
#: Fewer pairs carry no claim.
MIN_PAIRS = 8
