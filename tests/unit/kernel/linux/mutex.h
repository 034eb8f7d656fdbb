/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MSSFRAC_UNIT_MUTEX_H
#define MSSFRAC_UNIT_MUTEX_H

struct mutex {
	int unused;
};

#endif /* MSSFRAC_UNIT_MUTEX_H */
