/* SPDX-License-Identifier: GPL-2.0-only */
/* kmod/compat.h includes it and needs nothing of it (test_compat.sh). */
