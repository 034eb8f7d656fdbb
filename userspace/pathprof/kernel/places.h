/* SPDX-License-Identifier: GPL-2.0-only */
/* Names of the places that packets belong to. */
#ifndef PATHPROF_PLACES_H
#define PATHPROF_PLACES_H

#include "profile/profile.h"

/* Fill in the names of devices, namespaces and cgroups of all groups. */
void places__name(struct profile *p);

#endif
