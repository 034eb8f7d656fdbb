/* SPDX-License-Identifier: GPL-2.0-only */
/* Diverts the kernel's two functions to the policies. */
#ifndef MSSFRAC_HOOK_H
#define MSSFRAC_HOOK_H

int mssfrac_hook_install(void);
void mssfrac_hook_remove(void);

#endif /* MSSFRAC_HOOK_H */
