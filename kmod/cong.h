/* SPDX-License-Identifier: GPL-2.0-only */
/* Congestion control "mssfrac". */
#ifndef MSSFRAC_CONG_H
#define MSSFRAC_CONG_H

int mssfrac_cong_register(void);
void mssfrac_cong_unregister(void);

#endif /* MSSFRAC_CONG_H */
