/* SPDX-License-Identifier: GPL-2.0-only */
/* One ACK, as trajectory.bpf.c records it and trajectory.c prints it. */
#ifndef TRAJECTORY_H
#define TRAJECTORY_H

#include "cong_state.h"

#define TRAJECTORY_RECORDS	65536

struct trajectory_record {
	u32 port;		/* of the receiver; 0: no record */
	u32 us;			/* since the first ACK of the connection */
	u32 una;		/* bytes acknowledged before this ACK */
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 srtt_us;
	u32 in_flight;
	u32 ca_state;
	u64 pacing_rate;
	u32 pacing_status;
	struct cong cong;
};

#endif
