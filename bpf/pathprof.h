/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Structures that BPF programs and userspace exchange through maps.  Fixed
 * widths and explicit padding: path keys are compared word by word.
 */
#ifndef PATHPROF_H
#define PATHPROF_H

#include "stages.h"

#define PATH_STAGES	64	/* a power of two: indices are masked */
#define PATH_SHORT	32	/* so many are always compared and cleared */
#define PATH_PATHS	2048	/* distinct paths before map_full counts */
#define HIST_BUCKETS	40	/* bucket b: 2^b <= ns < 2^(b+1); 0 also 0 ns */
#define TRACKED_WAYS	8	/* one cache line of keys */
#define TRACKED_SETS	512
#define TRACKED_MAX		(TRACKED_SETS * TRACKED_WAYS)
#define CALLS		16	/* a power of two */
#define SOCKS		1024
#define GAPS		4096

enum { DIR_ANY = 0, DIR_RX = 1, DIR_TX = 2 };
#define DIR_NONE	DIR_ANY	/* of an entry without a path: later.bpf.h */
enum { ARM_ANY = 0, ARM_STOCK = 1, ARM_TREATED = 2 };
enum { KIND_WORK, KIND_WAIT, KIND_END };

/*
 * The upper 16 bits of an address in the kernel are all set.  With --drop-stacks
 * they are the number of the stack, plus one.
 */
#define DROP_ADDRESS		((1ULL << DROP_STACK_SHIFT) - 1)
#define DROP_STACK_SHIFT	48
#define DROP_STACKS		4096
#define DROP_FRAMES		24	/* with pathprof's program, and freeing */

/* What long paths need comes last: most are compared by their first words. */
#define PATH_KEY_WORDS	11
#define PATH_KEY_SHORT	7
struct path_key {
	__u32 flags;
	__u32 facts;
	__u32 reason;		/* of dropped packets: subsystem, 16 bits, each */
	__u8 n;
	__u8 dir;
	__u8 end;
	__u8 family;		/* 4 or 6 */
	/*
	 * Of dropped packets: the address, in its upper 16 bits the stack, see
	 * DROP_ADDRESS; in profiles an entry of a list.
	 */
	__u64 location;
	__u8 stages[PATH_STAGES];
};

struct path_value {
	__u64 packets;
	__u64 segments;
	__u64 bytes;		/* payload */
	__u64 work_ns;
	__u64 wait_ns;
	__u64 stage_ns[PATH_STAGES];
	__u64 hist[HIST_BUCKETS];	/* of work_ns per packet, as measured */
	__u64 probe_ns;		/* userspace: pathprof's own, off work_ns */
};

/* How often a stage took how long, over all paths; buckets as above. */
struct stage_times {
	__u64 hist[PATHPROF_STAGE_MAX][HIST_BUCKETS];
};

/* One entry of the table of paths; its sums are in path_values. */
enum { PATH_FREE, PATH_BUSY, PATH_USED };
struct path_entry {
	struct path_key key;
	__u64 state;
};

/* One packet that is being followed. */
struct tracked_pkt {
	__u64 sk;
	__u64 last_ns;
	__u32 bytes;
	__u32 segments;
	__u32 hash;		/* of the stages so far */
	__u32 end_seq;		/* sequence behind the payload; UDP: rx_extent() */
	__u32 tcp_word;		/* flags and window, as in the header */
	union {
		__u32 tsval;
		__u32 cpu;	/* of the driver's call; of sent packets */
	};
	__u8 has_ts:1;	/* the timestamp option, and no other */
	__u8 undecided:1;	/* a filter has not decided yet */
	__u8 unmatched:1;	/* by its own ends, see nat.bpf.h */
	__u8 captured:1;	/* its bytes were kept, see capture.bpf.h */
	__u8 last;		/* stage */
	__u16 events;		/* of it so far */
	__u32 number;		/* of the packet; 0: no events are kept */
	struct path_key path;
	__u64 stage_ns[PATH_STAGES];
	__u64 dev;		/* of the last EV_FLOW; only with events */
	__u8 callers[CALLS];	/* of stages that are calls: the stage before */
	__u64 handed_ns;	/* given to a worker, see stage_handed() */
};

/*
 * The state of a socket while its owner works on it: the packet being received,
 * the cause of a transmission, and the packet that TCP transmits.
 */
struct sock_work {
	__u64 sk;
	__u64 rx_key;		/* packet in tcp_rcv_established() */
	__u64 copy_key;		/* packet being copied to the reader */
	__u64 origin_ns;	/* 0: not measured */
	__u64 transmit_ns;
	__u32 bytes;
	__u32 segments;
	__u32 flags;
	__u32 facts;
	__u32 hold;		/* why data waited when this ACK came */
	__u8 origin;		/* stage id */
	__u8 pending;		/* TCP transmits; the device has not seen it */
	__u8 family;
	__u8 unmatched;		/* as of tracked_pkt */
};

/*
 * Devices whose packets were chosen at GRO, so that the stack's entry does
 * not draw for them a second time.  Stamped in jiffies: a device that left
 * GRO is forgotten within moments.  Unused when every packet is followed.
 */
struct gro_dev {
	__u64 dev;
	__u64 jiffies;
};

_Static_assert(sizeof(struct path_key) == 8 * PATH_KEY_WORDS, "path_key");
_Static_assert(sizeof(struct path_value) == 880, "path_value layout");
_Static_assert(sizeof(struct tracked_pkt) == 680, "tracked_pkt layout");
_Static_assert(sizeof(struct sock_work) == 64, "one cache line");

/*
 * Raw events, only with --events: one for each clock of a packet.  In path
 * order `index` counts from 0, so that a gap shows events that did not fit the
 * ring.  EV_FLOW carries struct event_flow, EV_BYTES struct event_bytes,
 * EV_STATE struct event_state.  EV_DISOWN: the packet is not one
 * of those asked for, and what was said of it before is not either.
 */
enum { EV_STAGE, EV_AGAIN, EV_FLOW, EV_END, EV_DISOWN, EV_BYTES,
       EV_STATE };
struct event {
	__u64 ns;
	__u64 from;		/* the stage before lasted from here to ns */
	__u32 number;		/* of the packet */
	__u16 index;
	__u16 cpu;
	__u32 flags;
	__u32 facts;
	__u32 bytes;
	__u32 reason;
	__u16 segments;
	__u8 what;
	__u8 stage;		/* entered, or gone back to */
	__u8 end;
	__u8 dir;
	__u8 family;
	__u8 pad;
};

struct event_flow {
	struct event event;
	__u32 source[4];	/* network order; IPv4 in the first word */
	__u32 destination[4];
	__u16 source_port, destination_port;
	__u32 seq;		/* 0 if not known, as of UDP and ICMP */
	__u32 ifindex;		/* of the device; 0: not known */
	__u32 netns;		/* inode number */
	char device[16];	/* its name; "": not known */
};

#define CAPTURE_MAX	192

/* The packet's first bytes, from IP on; of `length`. */
struct event_bytes {
	struct event event;
	__u32 length, captured;
	__u8 data[CAPTURE_MAX];
};

/* STATE(symbol, name, meaning): of a connection, with --state; append only. */
#define PATHPROF_STATES(STATE) \
STATE(CWND, "cwnd", "congestion window, segments") \
STATE(SND_WND, "snd_wnd", "window that the peer advertises, bytes") \
STATE(RCV_WND, "rcv_wnd", "window advertised to the peer, bytes") \
STATE(SRTT, "srtt_us", "smoothed round-trip time, us") \
STATE(IN_FLIGHT, "packets_out", "segments sent and not acknowledged") \
STATE(RMEM, "rmem", "memory of received data, bytes (sk_rmem_alloc)") \
STATE(WMEM, "wmem_queued", "memory of data to send, bytes") \
STATE(BACKLOG, "backlog", "memory of packets in the backlog, bytes") \
STATE(RCV_QUEUE, "rcv_queue", "packets in the receive queue") \
STATE(SND_QUEUE, "snd_queue", "packets in the write queue")

enum pathprof_state {
#define STATE(sym, name, meaning) STATE_##sym,
	PATHPROF_STATES(STATE)
#undef STATE
	STATE_MAX
};

struct event_state {
	struct event event;
	__u32 values[STATE_MAX];
};

/* The state that the packets of a path met, those that have one. */
struct path_state {
	__u64 packets;
	__u64 sum[STATE_MAX];
	__u32 least[STATE_MAX], most[STATE_MAX];
};

/* Where a packet belongs; 0: not known. */
#define GROUPS_MAX	4096
struct group_key {
	__u64 cgroup;		/* id */
	__u32 netns;		/* inode number */
	__u32 ifindex;
	__u16 port;		/* the lower one, host order */
	__u16 pad[3];
};

struct packet_detail {
	struct group_key where;
	__u32 state[STATE_MAX];
	__u32 has_state;
	__u32 pad;
};

struct group_value {
	__u64 packets, segments, bytes, work_ns, wait_ns, dropped;
};

_Static_assert(sizeof(struct group_key) == 24, "group_key layout");
_Static_assert(sizeof(struct event_state) == 88, "event_state layout");
_Static_assert(sizeof(struct path_state) == 168, "path_state layout");
_Static_assert(sizeof(struct event_bytes) == 248, "event_bytes layout");
_Static_assert(sizeof(struct event) == 48, "event layout");
_Static_assert(sizeof(struct event_flow) == 112, "event_flow layout");

/*
 * Userspace stores this in tracked_count to freeze the table: hooks that
 * still run leave it alone, whatever they add or take.
 */
#define TRACKED_FROZEN	(-(1LL << 62))

/*
 * The time of a hook's program, in ns, before it reads the clock that ends one
 * stage, and after it read the clock that begins the next.
 */
struct probe_costs {
	__u64 head, tail;	/* of a packet followed already */
	__u64 claim;		/* before: a sent packet is taken up */
	__u64 clock;		/* of these, reading the clock once */
};

/* One instruction of classic BPF, as libpcap makes them; at most so many. */
#define PCAP_BYTES	128	/* of a packet, from IP on; a power of two */
#define PCAP_INSNS	512	/* a power of two: indices are masked */
struct pcap_insn {
	__u16 code;
	__u8 jt, jf;
	__u32 k;
};

/* The configuration from userspace; constant while programs are loaded. */
struct pathprof_config {
	__u32 sample;		/* 1 in this many packets */
	__u16 port;		/* host order; 0: any */
	__u8 addr_family;	/* 0: any address, 4 or 6 */
	__u8 dir;		/* DIR_ANY: both */
	__u32 addr[4];		/* network order; IPv4 in addr[0] */
	__u32 mask[4];		/* which bits of addr count */
	__u32 ifindex;		/* 0: any */
	__u32 netns;		/* inode number; 0: any */
	__u8 exits;		/* the returns of TCP's functions are hooked */
	__u8 transmits;		/* __tcp_transmit_skb() is hooked */
	__u8 udp;		/* follow UDP, too */
	__u8 by_owner;		/* there is a cgroup or an arm */
	__u8 arm;		/* of mssfrac, ARM_*; 0: any */
	__u8 arm_percent;	/* its settings ab_percent, */
	__u8 stage_times;	/* keep them */
	__u8 backlog;		/* tcp_add_backlog() is hooked */
	__u8 synacks;		/* tcp_make_synack() is hooked */
	__u8 stack;		/* one path through the whole host */
	__u8 datagrams;		/* the functions that send UDP are hooked */
	__u8 users;		/* functions of --stage */
	__u8 icmp;		/* follow ICMP and ICMPv6, too */
	__u8 messages;		/* the functions that build them are hooked */
	__u32 arm_seed, arm_mark;	/* ab_seed, ab_mark */
	__u64 cgroup;		/* id, of the socket's or one above; 0: any */
};

#endif
