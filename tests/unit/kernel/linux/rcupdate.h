/* SPDX-License-Identifier: GPL-2.0-only */
/* All of it is in net/tcp.h. */
