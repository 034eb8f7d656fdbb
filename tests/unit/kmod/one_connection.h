/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one connection of test_tx.c and test_rx.c, whose socket the test sets, and
 * what the policies call for it.  To be included after them.
 */
#ifndef ONE_CONNECTION_H
#define ONE_CONNECTION_H

static struct mssfrac_net mn;
static _Alignas(8) char room[sizeof(struct mssfrac_conn) +
			     sizeof(struct mssfrac_policy)];
static struct mssfrac_conn *const conn = (struct mssfrac_conn *)room;
static bool no_memory;	/* for the state of the policies */
static struct tcp_sock tcp;
static struct sock *sk = (struct sock *)&tcp;

static void *the_namespace(void)
{
	return &mn;
}

static struct mssfrac_conn *the_connection(void)
{
	return conn;
}

struct mssfrac_conn *mssfrac_conn_new(const struct sock *sk)
{
	(void)sk;
	return NULL;
}

struct mssfrac_conn *mssfrac_conn_extend(struct mssfrac_conn *one)
{
	if (no_memory)
		return NULL;
	one->extended = 1;
	return one;
}
struct mssfrac_conns mssfrac_conns;
unsigned int mssfrac_net_id;

#endif
