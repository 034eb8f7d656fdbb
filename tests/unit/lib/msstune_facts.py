# SPDX-License-Identifier: GPL-2.0-only
"""Facts of a host where nothing is wrong; tests change one part of them."""
import copy

#: A sender of 100 Mbit/s for 2 s over 10 ms, limited only by cubic.
SENDER = {
    "local": "10.0.0.1:40000", "remote": "10.0.0.2:5201", "state": 1,
    "ca_state": 0, "retransmits": 0, "options": 7, "app_limited": False,
    "snd_mss": 1448, "rcv_mss": 536, "unacked": 80, "snd_cwnd": 90,
    "snd_ssthresh": 2**31 - 1, "rtt": 10400, "rttvar": 300, "min_rtt": 10000,
    "rcv_rtt": 0, "rcv_wscale": 7,
    "pacing_rate": 2 * 10**7, "max_pacing_rate": 2**64 - 1, "timer": 1,
    "rqueue": 0, "wqueue": 10**5, "rcv_ssthresh": 65535, "sndbuf": 4 << 20,
    "rcvbuf": 131072, "cc": "cubic", "inode": 5, "high_snd_wnd": 3 << 20,
    "low_snd_wnd": 3 << 20, "snd_wscale": 7,
    "snd_wnd": 3 << 20, "high_unacked": 85, "high_notsent_bytes": 10**5,
    "low_rqueue": 0, "high_rqueue": 0,
    "d_bytes_acked": 25 * 10**6, "d_bytes_received": 0,
    "d_busy_time": 2 * 10**6, "d_rwnd_limited": 0, "d_sndbuf_limited": 0,
    "d_total_retrans": 0, "d_data_segs_out": 17265, "d_dsack_dups": 0,
    "d_drops": 0}
RECEIVER = SENDER | {
    "d_bytes_acked": 0, "d_bytes_received": 25 * 10**6, "wqueue": 0,
    "unacked": 0, "d_busy_time": 0, "rcv_mss": 1448, "rcv_rtt": 10400,
    "rcv_ssthresh": 3 << 20, "rcvbuf": 6 << 20, "notsent": 0}
DEVICE = {
    "kind": "", "mtu": 1500, "txqueuelen": 1000, "tx_queues": 1, "rx_queues": 1,
    "rx": {"packets": 20000, "bytes": 30 * 10**6},
    "tx": {"packets": 20000, "bytes": 30 * 10**6},
    "offload": {"gro": "on", "gso": "on", "tso": "on"},
    "coalesce": {"rx-usecs": "50"}, "ring": {"rx": 256, "rx_max": 4096},
    "bus": {}, "bits_per_second": {"rx": 1.2e8, "tx": 1.2e8},
    "qdiscs": [{"kind": "fq_codel", "drops": 0, "packets": 20000,
                "options": {}}]}
CPU = {"user": 20, "nice": 0, "system": 20, "idle": 150, "iowait": 0, "irq": 0,
       "softirq": 10, "steal": 0}


def facts(flow=None, **more):
    return copy.deepcopy({
        "interval": 2.0, "page": 4096, "memory": 8 << 30, "flows_total": 1,
        "flows": [SENDER | (flow or {})], "devices": {"eth0": DEVICE},
        "softnet": [{"cpu": 0, "processed": 9, "dropped": 0, "squeezed": 0}],
        "snmp": {}, "sockstat": {"mem": 100}, "cpus": {"0": CPU, "1": CPU},
        "irqs": {}, "mssfrac": {}, "profile": [],
        "sysctl": {"net.ipv4.tcp_rmem": "4096 131072 6291456",
                   "net.ipv4.tcp_mem": "1000 2000 3000",
                   "net.ipv4.tcp_timestamps": "1",
                   "net.ipv4.tcp_moderate_rcvbuf": "1"}} | more)
