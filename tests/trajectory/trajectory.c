// SPDX-License-Identifier: GPL-2.0-only
/*
 * Records congestion windows until its standard input ends, then prints a line
 * for each ACK (trajectory.bpf.c).
 *
 * usage: trajectory OBJECT FIRST-PORT LAST-PORT
 *
 * The first line of the output names the columns.  Those from win on are of
 * struct cong (kmod/cong_state.h).
 */
#include <err.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <bpf/libbpf.h>

typedef uint32_t u32;
typedef uint64_t u64;
typedef uint8_t u8;

#include "trajectory.h"

static void print_curve(const struct mssfrac_curve *curve)
{
	printf(" %u %u %u %u %u", curve->w_max, curve->w_est, curve->prior,
	       curve->k_ms, curve->t_us);
}

static void print(const struct trajectory_record *r)
{
	const struct cong *ca = &r->cong;

	printf("%u %u %u %u %u %u %u %u %llu %u", r->port, r->us, r->una,
	       r->snd_cwnd, r->snd_ssthresh, r->srtt_us, r->in_flight,
	       r->ca_state, (unsigned long long)r->pacing_rate,
	       r->pacing_status);
	printf(" %u %u %u %u %u %u %u %u %u %u %u", ca->win, ca->seg, ca->cwnd,
	       ca->ssthresh, ca->ssthresh_segs, ca->credit, ca->est_credit,
	       ca->bytes_seen, ca->acked, ca->stamp, ca->min_rtt_us);
	print_curve(&ca->curve);
	print_curve(&ca->undo_curve);
	printf(" %u %u %u %u %u\n", ca->undo_win, ca->round_end,
	       ca->round_rtt_us, ca->samples, ca->hystart_done);
}

static void print_all(const struct bpf_object *obj)
{
	struct trajectory_record r;
	struct bpf_map *map;
	u32 i;

	printf("port us una snd_cwnd snd_ssthresh srtt_us in_flight ca_state"
	       " pacing_rate pacing_status win seg cwnd ssthresh ssthresh_segs"
	       " credit est_credit bytes_seen acked stamp min_rtt_us w_max w_est"
	       " prior k_ms t_us undo_w_max undo_w_est undo_prior undo_k_ms"
	       " undo_t_us undo_win round_end round_rtt_us samples"
	       " hystart_done\n");
	map = bpf_object__find_map_by_name(obj, "records");
	for (i = 0; i < TRAJECTORY_RECORDS; i++) {
		if (!map || bpf_map__lookup_elem(map, &i, sizeof(i), &r,
						 sizeof(r), 0))
			err(1, "read");
		if (!r.port)
			return;
		print(&r);
	}
	errx(1, "there was no room for further ACKs");
}

int main(int argc, char **argv)
{
	struct bpf_program *prog;
	struct bpf_object *obj;
	u32 ports[2];
	struct bpf_map *map;
	char byte;

	if (argc != 4)
		errx(2, "usage: trajectory OBJECT FIRST-PORT LAST-PORT");
	ports[0] = atoi(argv[2]);
	ports[1] = atoi(argv[3]);
	obj = bpf_object__open_file(argv[1], NULL);
	if (!obj)
		err(1, "%s", argv[1]);
	map = bpf_object__find_map_by_name(obj, ".rodata");
	if (!map || bpf_map__set_initial_value(map, ports, sizeof(ports)))
		errx(1, "the object has other constants than these");
	if (bpf_object__load(obj))
		err(1, "load");
	bpf_object__for_each_program(prog, obj)
		if (!bpf_program__attach(prog))
			err(1, "attach %s", bpf_program__name(prog));
	fprintf(stderr, "recording\n");
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	print_all(obj);
	return fflush(stdout) ? 1 : 0;
}
