// SPDX-License-Identifier: GPL-2.0-only
/*
 * Delimits a sender's round trips, and counts how much of the peer's window those
 * used that it limited.  Runs with all policies off, too; tx.c decides at the end
 * of a round trip.
 *
 * Sequence numbers delimit round trips, as in tcp_vegas.c (beg_snd_nxt).  One
 * ends when everything that was in flight at its start is acknowledged.
 */
#include "conn.h"
#include "rounds.h"

static bool window_limits(const struct sock *sk)
{
	return tcp_sk(sk)->chrono_type == TCP_CHRONO_RWND_LIMITED &&
	       tcp_send_head(sk) &&
	       inet_csk(sk)->icsk_ca_state < TCP_CA_Recovery;
}

/* Begin with the first round trip, or discard the current one. */
void mssfrac_rounds_begin(const struct sock *sk, struct mssfrac_conn *conn)
{
	conn->rounds.last_una = tcp_sk(sk)->snd_una;
	conn->rounds.window = 0;
	conn->rounds_seen = 1;
	conn->round_open = 0;
	conn->limited = 0;
}

/* What is acknowledged while a socket is left alone belongs to no round trip. */
void mssfrac_rounds_forget(const struct sock *sk)
{
	struct mssfrac_conn *conn;

	conn = mssfrac_conn_left_alone(sk) ? mssfrac_conn_find(sk) : NULL;
	if (conn)
		conn->rounds_seen = 0;
}

static void count(struct mssfrac_conn *conn, const struct mssfrac_round *round)
{
	mssfrac_count(conn, tx_rounds, 1);
	mssfrac_count(conn, tx_bytes_used, round->acked);
	if (round->acked < round->window)
		mssfrac_count(conn, tx_bytes_lost, round->window - round->acked);
}

/*
 * Called before the kernel sends.  The segments sent after this call are in
 * flight at the next one, which therefore sets the end of the round trip.
 * True: one has ended, and @round is that one.
 */
bool mssfrac_rounds_watch(const struct sock *sk, struct mssfrac_conn *conn,
			  struct mssfrac_round *round)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct mssfrac_rounds *rounds = &conn->rounds;

	rounds->window = max(rounds->window, tp->snd_wnd);
	if (!conn->round_open) {
		rounds->end = tp->snd_nxt;
		conn->round_open = rounds->end != rounds->last_una;
	}
	if (!conn->round_open || before(tp->snd_una, rounds->end))
		return false;

	round->window = rounds->window;
	round->acked = tp->snd_una - rounds->last_una;
	round->limited = window_limits(sk) && round->acked;
	/* One that began with another limit says nothing of the window. */
	round->whole = round->limited && conn->limited;
	mssfrac_conn_count(sk, conn);
	if (round->limited)
		count(conn, round);

	conn->limited = round->limited;
	conn->round_open = 0;
	rounds->last_una = tp->snd_una;
	rounds->window = tp->snd_wnd;
	return true;
}
