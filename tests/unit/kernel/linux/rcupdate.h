/* SPDX-License-Identifier: GPL-2.0 */
/* All of it is in net/tcp.h. */
