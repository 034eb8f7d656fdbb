/* SPDX-License-Identifier: GPL-2.0-only */
/* Round trips of a sender: their state in each connection, and their ends. */
#ifndef MSSFRAC_ROUNDS_H
#define MSSFRAC_ROUNDS_H

#include <linux/types.h>

struct mssfrac_conn;
struct sock;

/* The socket lock protects every field. */
struct mssfrac_rounds {
	u32 end;		/* sequence that ends the round trip */
	u32 window;		/* bytes; largest window advertised in it */
	u32 last_una;		/* snd_una at the end of the one before */
};

/* A round trip that has ended. */
struct mssfrac_round {
	u32 window;		/* bytes; largest window advertised in it */
	u32 acked;		/* bytes acknowledged in it */
	bool limited;		/* the window was the limit at its end */
	bool whole;		/* and at its beginning */
};

/* Socket lock held, any context. */
void mssfrac_rounds_begin(const struct sock *sk, struct mssfrac_conn *conn);
void mssfrac_rounds_forget(const struct sock *sk);
bool mssfrac_rounds_watch(const struct sock *sk, struct mssfrac_conn *conn,
			  struct mssfrac_round *round);

#endif /* MSSFRAC_ROUNDS_H */
