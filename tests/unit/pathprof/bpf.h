/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What compiles pathprof's programs for this machine, for unit tests: libbpf's
 * headers as far as the programs need them, and helpers of the kernel.  A test
 * defines bpf_map_lookup_elem().
 */
#ifndef TESTS_UNIT_BPF_H
#define TESTS_UNIT_BPF_H

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define __BPF_HELPERS__
#define __BPF_CORE_READ_H__
#define __BPF_TRACING_H__
#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __noinline __attribute__((noinline))
#define __weak __attribute__((weak))
#define SEC(name)
#define __kconfig
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name
#define BPF_CORE_READ(...) 0
#define BPF_CORE_READ_INTO(...) ((void)0)
#define bpf_core_read(...) ((void)0)
#define bpf_core_field_exists(...) 0
#define bpf_core_field_offset(type, field) __builtin_offsetof(type, field)
#define bpf_core_enum_value(type, value) (value)
#define bpf_core_enum_value_exists(...) 1
#define bpf_get_prandom_u32() 0
#define bpf_jiffies64() 0
#define bpf_get_smp_processor_id() this_cpu
#define bpf_loop(...) ((void)0)
#define bpf_get_func_arg(...) ((void)0)
#define bpf_get_func_ret(...) ((void)0)
#define bpf_map_update_elem(...) ((void)0)
#define bpf_ktime_get_ns() (++clock_ns)
#define bpf_skc_to_tcp_sock(sk) ((struct tcp_sock *)(sk))
#define bpf_get_stackid(...) (-1)
#define bpf_ringbuf_reserve(...) 0
#define bpf_ringbuf_submit(...) ((void)0)

/* Locks that a hook took, or tried to. */
#define __sync_val_compare_and_swap(...) \
	(locks++, __sync_val_compare_and_swap(__VA_ARGS__))

static unsigned long long clock_ns;
static unsigned int this_cpu, locks;
static void *bpf_map_lookup_elem(void *map, const void *key);

static int bpf_probe_read_kernel(void *to, unsigned int size, const void *from)
{
	memcpy(to, from, size);
	return 0;
}

int LINUX_KERNEL_VERSION;

#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include "../../../bpf/compat.bpf.h"

#endif
