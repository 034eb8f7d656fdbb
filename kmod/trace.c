// SPDX-License-Identifier: GPL-2.0-only
/* Instantiates the tracepoints of trace.h, and nothing else. */
#define CREATE_TRACE_POINTS
#include "trace.h"
