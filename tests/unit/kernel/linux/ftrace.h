/* SPDX-License-Identifier: GPL-2.0 */
/* kmod/compat.h includes it and needs nothing of it (test_compat.sh). */
