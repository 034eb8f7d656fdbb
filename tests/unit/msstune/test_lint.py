# SPDX-License-Identifier: GPL-2.0-only
"""lint: each rule on a line that it must report and on one that it must not; how
files and scripts are read; which file takes effect."""
import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
TOOL = TOP / "userspace/msstune/msstune.sh"
sys.path.insert(0, str(TOP / "userspace/msstune"))

from msstune import errors  # noqa: E402
from msstune.lint import (items as lint_items, lint, read as lint_read,  # noqa: E402
                          rules as lint_rules)
from msstune.lint.kernel import Kernel  # noqa: E402

MACHINE = lint_rules.Machine(memory=8 << 30)
IPV4 = "net.ipv4."


def rules(tmp_path, text, name="a.conf"):
    path = tmp_path / name
    path.write_text(text)
    return {f.rule for f in lint.check({str(path): lint_read.read(path)},
                                       MACHINE)}


@pytest.mark.parametrize("bad, rule, good", [
    ("tcp_mem = 10000000 10000001 10000002", "unit-pages",
     "tcp_mem = 190000 250000 380000"),
    ("tcp_mem = 9 9 9", "no-pressure", "tcp_mem = 8 9 10"),
    ("tcp_mem = 3 2 1", "order", "tcp_mem = 1 2 3"),
    ("tcp_rmem = 4096 87380 4096", "order", "tcp_rmem = 4096 87380 87380"),
    ("tcp_rmem = 10000000 10000000 10000000", "min-element",
     "tcp_rmem = 4096 131072 10000000"),
    ("tcp_wmem = 4096 10000000 10000000", "default-element",
     "tcp_wmem = 4096 16384 10000000"),
    ("tcp_rmem = 4096 87380 2147483648", "limit",
     "tcp_rmem = 4096 87380 2147483647"),
    ("tcp_rmem = 4096 87380 1073741825", "memory",
     "tcp_rmem = 4096 87380 1073741824"),
    ("tcp_rmem = 0 87380 16777216", "limit", "tcp_rmem = 1 87380 16777216"),
    ("tcp_rmem = 16777216", "count", "tcp_rmem = 4096 87380 16777216"),
    ("tcp_rmem = 4096 87380 16M", "not-a-number",
     "tcp_rmem = 4096 87380 16777216"),
    ("tcp_sack = 0", "sack-off", "tcp_sack = 1"),
    ("tcp_timestamps = 0", "timestamps-off", "tcp_timestamps = 1"),
    ("tcp_window_scaling = 0", "scaling-off", "tcp_window_scaling = 1"),
    ("tcp_moderate_rcvbuf = 0", "autotuning-off", "tcp_moderate_rcvbuf = 1"),
    ("tcp_dsack=0", "dsack-off", "tcp_dsack=1"),
    ("tcp_frto=0", "frto-off", "tcp_frto=2"),
    ("tcp_recovery=0", "rack-off", "tcp_recovery=1"),
    ("tcp_early_retrans=0", "tlp-off", "tcp_early_retrans=3"),
    ("tcp_low_latency = 1", "stale", "tcp_autocorking = 1"),
    ("tcp_tw_recycle = 1", "stale", "tcp_tw_reuse = 1"),
    ("tcp_adv_win_scale = 2", "stale", "tcp_app_win = 31"),
    ("tcp_max_orphans = 100", "lowered", "tcp_max_orphans = 65536"),
    ("tcp_fin_timeout = 5", "fin-timeout", "tcp_fin_timeout = 60"),
    ("tcp_mem = 0 0 0", "too-small", "tcp_mem = 1000 2000 4000"),
    ("tcp_rmem = 1 1 1", "too-small", "tcp_rmem = 4096 87380 32768"),
    ("tcp_wmem = 4096 16384 16384", "too-small", "tcp_wmem = 4096 16384 65536"),
    ("tcp_retries2 = 5", "too-small", "tcp_retries2 = 8"),
    ("tcp_limit_output_bytes = 9000", "too-small", "tcp_limit_output_bytes = 65536"),
    ("tcp_min_snd_mss = 47", "limit", "tcp_min_snd_mss = 48"),
    ("tcp_min_snd_mss = 1400", "min-snd-mss", "tcp_min_snd_mss = 536"),
    ("tcp_syncookies = 0", "syncookies-off", "tcp_syncookies = 1"),
    ("tcp_syncookies = 2", "syncookies-always", "tcp_syncookies = 1"),
    ("tcp_shrink_window = 1", "shrink-window", "tcp_shrink_window = 0"),
    ("tcp_rcvbuf_low_rtt = 0", "low-rtt-off", "tcp_rcvbuf_low_rtt = 1000"),
    ("tcp_rcvbuf_low_rtt = 1000000", "unit-usec", "tcp_rcvbuf_low_rtt = 1000"),
    ("tcp_ecn = 0", "ecn-off", "tcp_ecn = 2"), ("tcp_ecn = 1", "ecn-on", "tcp_ecn = 2"),
    ("tcp_ecn = 3", "accurate-ecn", "tcp_ecn = 2"),
    ("tcp_ecn = 9", "limit", "tcp_ecn = 5"),
    ("tcp_ecn = 1\nnet.ipv4.tcp_ecn_fallback = 0", "ecn-fallback",
     "tcp_ecn = 1\nnet.ipv4.tcp_ecn_fallback = 1"),
    ("ip_local_port_range = 60000 1024", "range", "ip_local_port_range = 1024 60000"),
    ("ip_local_port_range = 1024 1100", "few-ports",
     "ip_local_port_range = 1024 65535"),
    ("ip_local_port_range = 1024", "count", "ip_local_port_range = 1024 65535"),
    ("ip_default_ttl = 1", "too-small", "ip_default_ttl = 64"),
    ("tcp_limit_output_bytes = 99999999", "tsq",
     "tcp_limit_output_bytes = 1048576"),
    ("tcp_tw_reuse=1\nnet.ipv4.tcp_timestamps=0", "tw-reuse",
     "tcp_tw_reuse=1\nnet.ipv4.tcp_timestamps=1"),
])
def test_rule(tmp_path, bad, rule, good):
    assert rule in rules(tmp_path, IPV4 + bad)
    assert rule not in rules(tmp_path, IPV4 + good)


@pytest.mark.parametrize("bad, rule, good", [
    ("netdev_max_backlog = 250000", "backlog", "netdev_max_backlog = 5000"),
    ("netdev_budget_usecs = 300000", "budget", "netdev_budget_usecs = 8000"),
    ("netdev_budget = 10", "too-small", "netdev_budget = 300"),
    ("netdev_max_backlog = 0", "too-small", "netdev_max_backlog = 1000"),
    ("rmem_max = 1000", "too-small", "rmem_max = 212992"),
    ("rmem_default = 33554432", "default-all", "rmem_default = 212992"),
    ("rmem_max = 4294967296", "limit", "rmem_max = 134217728"),
    ("rmem_max = 2000000000", "memory", "rmem_max = 134217728"),
    ("rmem_max = 134217728", "core-only",
     "rmem_max = 134217728\nnet.ipv4.tcp_rmem = 4096 131072 134217728"),
])
def test_core_rule(tmp_path, bad, rule, good):
    assert rule in rules(tmp_path, "net.core." + bad)
    assert rule not in rules(tmp_path, "net.core." + good)


@pytest.mark.parametrize("bad, rule, good", [
    ("ethtool -K eth0 tso off", "offload-off", "ethtool -K eth0 tso on"),
    ("ethtool -K eth0 tx off", "checksum-off", "ethtool -K eth0 tx on"),
    ("ethtool -A eth0 rx off", "pause-off", "ethtool -A eth0 rx on"),
    ("ethtool -C eth0 rx-usecs 0", "coalesce-off",
     "ethtool -C eth0 rx-usecs 50"),
    ("setpci -d 8086:1048 e6.b=2e", "pci-x", "setpci -s 1:0.0 CAP_EXP+8.w=5000"),
    ("ip link set eth0 txqueuelen 10000", "txqueuelen",
     "ip link set eth0 txqueuelen 1000"),
    ("/usr/bin/systemctl stop irqbalance", "irqbalance",
     "systemctl start irqbalance"),
])
def test_command(tmp_path, bad, rule, good):
    assert rule in rules(tmp_path, f"#!/bin/sh\nif true; then sudo {bad}; fi\n",
                         "a")
    assert rule not in rules(tmp_path, f"#!/bin/sh\n{good}\n", "a")


def test_the_lan_settings_of_the_report(tmp_path):
    """SDSC/GIAC report, table for Sun: both mistakes are reported."""
    found = rules(tmp_path, """
net.ipv4.tcp_timestamps = 0
net.ipv4.tcp_sack = 0
net.ipv4.tcp_rmem = 10000000 10000000 10000000
net.ipv4.tcp_wmem = 10000000 10000000 10000000
net.ipv4.tcp_mem = 10000000 10000000 10000000
net.core.rmem_max = 524287
net.core.rmem_default = 524287
net.core.optmem_max = 524287
net.core.netdev_max_backlog = 300000
""")
    assert {"unit-pages", "no-pressure", "sack-off", "timestamps-off", "backlog",
            "min-element", "default-element"} <= found


def test_a_kernels_own_values_are_clean(tmp_path):
    assert not rules(tmp_path, """
# kernel 6.1 with 8 GB
net.ipv4.tcp_rmem = 4096 131072 6291456
net.ipv4.tcp_wmem = 4096\t16384\t4194304
; another comment
-net.ipv4.tcp_mem = 91578 122106 183156
-net.ipv4.conf.all.rp_filter
net/ipv4/tcp_sack = 1
net.core.netdev_max_backlog = 1000
net.core.netdev_budget_usecs = 8000
""")


def read(tmp_path, text, name="x.sh"):
    path = tmp_path / name
    path.write_text(text)
    return [(i.key, i.value, i.line) for i in lint_read.read(path)
            if isinstance(i, lint_items.Assignment)]


def test_settings_in_scripts(tmp_path):
    assert read(tmp_path, r"""#!/bin/bash
sysctl -q -w net.ipv4.tcp_sack=0 "net.ipv4.tcp_rmem=1 2 3"
echo '4096 5 6' > /proc/sys/net/ipv4/tcp_wmem  # why
echo 1 | sudo tee /proc/sys/net/ipv4/tcp_ecn
sudo sysctl \
  net/ipv4/conf/eth0.5/mtu=9
true && /sbin/sysctl -w net.core.rmem_max=7 || exit
# sysctl -w net.ipv4.tcp_sack=1
echo it's open
cat >>/etc/sysctl.conf <<END
net.core.wmem_max = 8
END
for f in 1; do echo 1 >/proc/sys/net/ipv4/ip_forward; done
""") == [("net.ipv4.tcp_sack", "0", 2), ("net.ipv4.tcp_rmem", "1 2 3", 2),
         ("net.ipv4.tcp_wmem", "4096 5 6", 3), ("net.ipv4.tcp_ecn", "1", 4),
         ("net.ipv4.conf.eth0/5.mtu", "9", 5),
         ("net.core.rmem_max", "7", 7), ("net.core.wmem_max", "8", 11),
         ("net.ipv4.ip_forward", "1", 13)]


def test_a_variable_is_reported_not_judged(tmp_path):
    assert rules(tmp_path, "sysctl -w net.ipv4.tcp_sack=$SACK\n", "a.sh") == {
        "not-checked"}


def test_a_later_file_wins(tmp_path):
    """Later by name, not in the order given; /etc masks a file of the same name."""
    files = {
        "/etc/sysctl.d/90-z.conf": "net.ipv4.tcp_sack = 1",
        "/etc/sysctl.d/10-a.conf": "net.ipv4.tcp_sack = 0",
        "/usr/lib/sysctl.d/10-a.conf": "net.ipv4.tcp_sack = 1",
        "/etc/sysctl.conf": "net.ipv4.tcp_dsack = 1",
        "tune.sh": "net.ipv4.tcp_dsack = 1",
    }
    items = {name: lint_read._fragment(name, text)
             for name, text in files.items()}
    assert lint.in_force(list(files))[0] == [
        "/etc/sysctl.d/10-a.conf", "/etc/sysctl.d/90-z.conf",
        "/etc/sysctl.conf", "tune.sh"]
    found = {(f.file, f.rule): f.why for f in lint.check(items, MACHINE)}
    assert set(found) == {
        ("/etc/sysctl.d/10-a.conf", "sack-off"),
        ("/etc/sysctl.d/10-a.conf", "overridden"),
        ("/usr/lib/sysctl.d/10-a.conf", "masked"),
        ("/etc/sysctl.conf", "repeated")}
    assert "/etc/sysctl.d/90-z.conf:1" in found[
        "/etc/sysctl.d/10-a.conf", "overridden"]


def test_one_bad_line_does_not_end_the_others(tmp_path):
    path = tmp_path / "a.conf"
    path.write_text("net.ipv4.tcp_sack 0\nnet.ipv4.tcp_sack = 0\n")
    found = lint.check({str(path): lint_read.read(path)}, MACHINE)
    assert [(f.line, f.level, f.rule) for f in found] == [
        (1, "error", "syntax"), (2, "error", "sack-off")]


def test_no_text_file(tmp_path):
    path = tmp_path / "a.conf"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(errors.UsageError, match="not a text file"):
        lint_read.read(path)


# --- The running kernel -------------------------------------------------------

@pytest.fixture
def kernel(tmp_path):
    """A kernel of a few sysctls, without modules."""
    folder = tmp_path / "root/proc/sys/net/ipv4"
    folder.mkdir(parents=True)
    for name in ("tcp_congestion_control", "tcp_sack"):
        (folder / name).write_text("")
    (folder / "tcp_available_congestion_control").write_text("reno own\n")
    return Kernel(tmp_path / "root")


@pytest.mark.parametrize("key, value, level, hint", [
    ("net.ipv4.tcp_congestion_controll", "cubic", "error",
     "did you mean tcp_congestion_control?"),
    ("net.ipv4.tcp_congestion_control", "cubik", "error", "did you mean cubic?"),
    ("net.ipv4.tcp_congestion_control", "zzz", "error", "no such algorithm"),
    ("net.ipv4.something_else", "1", "warning", "no such key"),
    ("net.netfilter.nf_conntrack_max", "9", "note", "not loaded"),
    ("net.ipv4.tcp_congestion_control", "bbr", "", ""),
    ("net.ipv4.tcp_congestion_control", "own", "", ""),
    ("net.ipv4.tcp_sack", "1", "", ""), ("net.ipv4.conf.*.rp_filter", "1", "", "")])
def test_against_the_running_kernel(kernel, key, value, level, hint):
    item = lint_items.Assignment("f", 1, key, value)
    found = list(lint_rules.assignment(item, lint_rules.Machine(8 << 30, 4096,
                                                                kernel)))
    assert [f.level for f in found] == ([level] if level else [])
    assert all(hint in f.why for f in found)
    # A dash allows that a key is missing, and no typing error.
    optional = dataclasses.replace(item, optional=True)
    assert [f.level for f in lint_rules.assignment(optional, lint_rules.Machine(
        8 << 30, 4096, kernel))] == (["error"] if level == "error" else [])
    # For another machine nothing is known.
    assert not list(lint_rules.assignment(item, MACHINE))


# --- tuned and Ansible --------------------------------------------------------

def test_a_tuned_profile(tmp_path):
    assert read(tmp_path, """[main]
include=throughput-performance
[sysctl]
# comment
net.core.rmem_max=>16777216
net.ipv4.tcp_rmem="4096 87380 16777216"
net.ipv4.tcp_sack=0
vm.swappiness=${swap}
[sysfs]
/sys/class/net/eth0/mtu=9000
""", "tuned.conf") == [
        ("net.core.rmem_max", "16777216", 5),
        ("net.ipv4.tcp_rmem", "4096 87380 16777216", 6),
        ("net.ipv4.tcp_sack", "0", 7), ("vm.swappiness", "${swap}", 8)]


def test_ansible_tasks(tmp_path):
    assert read(tmp_path, """---
- hosts: all
  vars:
    sysctls:
      net.core.wmem_max: 16777216
  tasks:
    - name: Window of connections
      ansible.posix.sysctl:
        name: net.ipv4.tcp_rmem
        value: "4096 87380 16777216"
        state: present
    - name: old form
      sysctl: name=net.ipv4.tcp_sack value=0 reload=yes
    - sysctl: {name: 'net/ipv4/tcp_dsack', value: '0'}
    - name: with a loop
      sysctl:
        name: "{{ item.key }}"
        value: "{{ item.value }}"
      loop:
        - { key: net.ipv4.tcp_frto, value: 0 }  # comment
        - key: net.ipv4.tcp_recovery
          value: 0
    - name: not a sysctl
      copy: {name: x, value: 1}
    - name: net.ipv4.tcp_fack
    - debug: {value: 1}
    - sysctl:
        value: "{{ congestion }}"
        name: net.ipv4.tcp_congestion_control
""", "tasks.yml") == [
        ("net.core.wmem_max", "16777216", 5),
        ("net.ipv4.tcp_rmem", "4096 87380 16777216", 9),
        ("net.ipv4.tcp_sack", "0", 13), ("net.ipv4.tcp_dsack", "0", 14),
        ("net.ipv4.tcp_frto", "0", 20), ("net.ipv4.tcp_recovery", "0", 21),
        ("net.ipv4.tcp_congestion_control", "${ congestion }", 29)]


def test_yaml_that_removes_a_setting_or_lists_words(tmp_path):
    assert read(tmp_path, """
- ansible.posix.sysctl:
    name: net.ipv4.tcp_sack
    value: "0"
    state: absent
services:
  web:
    sysctls:
      - net.ipv4.tcp_window_scaling=0
      - "net.ipv4.tcp_wmem=1 1 1"
      - net.ipv4.tcp_dsack: 0
""", "compose.yml") == [("net.ipv4.tcp_window_scaling", "0", 9),
                        ("net.ipv4.tcp_wmem", "1 1 1", 10),
                        ("net.ipv4.tcp_dsack", "0", 11)]


def test_settings_that_a_script_puts_into_a_file(tmp_path):
    assert read(tmp_path, r"""#!/bin/bash
echo "net.ipv4.tcp_sack = 0" >> /etc/sysctl.conf
printf 'net.ipv4.tcp_rmem = 1 1 1\n' | sudo tee -a /etc/sysctl.d/99-local.conf
echo -e "net.ipv4.tcp_frto=0\nnet.ipv4.tcp_mem = 0 0 0" >> /etc/sysctl.conf
sed -i 's/^net.ipv4.tcp_ecn.*/net.ipv4.tcp_ecn = 0/' /etc/sysctl.conf
sed -i '$ a net.ipv4.tcp_dsack=0' /etc/sysctl.conf
sysctl -w net.ipv4.tcp_fack=0 2>/dev/null
echo "net.ipv4.tcp_recovery = 0"
""") == [("net.ipv4.tcp_sack", "0", 2), ("net.ipv4.tcp_rmem", "1 1 1", 3),
         ("net.ipv4.tcp_frto", "0", 4), ("net.ipv4.tcp_mem", "0 0 0", 4),
         ("net.ipv4.tcp_ecn", "0", 5), ("net.ipv4.tcp_dsack", "0", 6),
         ("net.ipv4.tcp_fack", "0", 7)]


@pytest.mark.parametrize("name, text, level, why", [
    ("a.sh", "sysctl -w net.ipv4.tcp_sack = 0", "error", "refuses each of these words"),
    ("a.conf", "sysctl -w net.ipv4.tcp_sack=0", "error", "no name of a key"),
    ("a.conf", "\ufeffnet.ipv4.tcp_sack = 0", "error", "byte-order mark"),
    ("a.conf", "\x1b[31mnet.ipv4.tcp_sack = 0", "error", "no name of a key"),
    ("a.conf", "net.ipv4.tcp_sack = 0 # broken", "error", "without SACK"),
    ("a.conf", "net.ipv4.tcp_sack = 0x0", "error", "without SACK")])
def test_lines_that_fail_or_do_more_than_they_seem(tmp_path, name, text, level, why):
    path = tmp_path / name
    path.write_text(text + "\n")
    found, = lint.check({str(path): lint_read.read(path)}, MACHINE)
    assert found.level == level and why in found.why


@pytest.mark.parametrize("name, text, status", [
    ("a.sh", "#!/bin/sh\nls\n", 2), ("a.yml", "- name: net.ipv4.tcp_sack\n", 2),
    ("a.conf", "net\n", 1), ("a.txt", "", 0),
    ("a.conf", "# only\n\n; comments\n", 0),
    ("a.conf", "[main]\nsummary=x\n[cpu]\ngovernor=powersave\n", 0)])
def test_a_file_without_settings(tmp_path, name, text, status):
    path = tmp_path / name
    path.write_text(text)
    for more in ((), ("--json",)):
        done = subprocess.run([TOOL, "lint", *more, path], capture_output=True,
                              text=True, check=False)
        assert done.returncode == status, done
        assert (f"{path}: no setting was found in it" in done.stderr) == (status == 2)
        assert more or status or "0 settings" in done.stdout


def test_output_that_cannot_take_all(tmp_path):
    path = tmp_path / "a.conf"
    path.write_text("net.ipv4.tcp_sack = 0\nnet.ipv4.tcp_\u00e9 = \x1b[2J\n")
    closed = subprocess.run(f"{TOOL} lint {path} >&-", shell=True, check=False,
                            capture_output=True, text=True)
    assert closed.returncode == 1 and closed.stderr == (
        "msstune: standard output is closed; nothing was done\n")
    ascii_only = subprocess.run([TOOL, "lint", path], capture_output=True, check=False,
                                env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert ascii_only.returncode == 1 and not ascii_only.stderr
    assert b"\\x1b[2J" in ascii_only.stdout and b"\\xe9" in ascii_only.stdout


def test_exit_status_and_json(tmp_path):
    bad, good = tmp_path / "a.conf", tmp_path / "b.conf"
    bad.write_text("net.ipv4.tcp_sack = 0\n")
    good.write_text("net.ipv4.tcp_fin_timeout = 5\n")

    def call(*arguments):
        return subprocess.run([TOOL, "lint", *arguments], capture_output=True,
                              text=True, check=False)
    assert call(bad).returncode == 1
    assert call(good).returncode == 0 and "1 notes" in call(good).stdout
    document = json.loads(call("--json", bad, good).stdout)
    assert [(f["rule"], f["line"]) for f in document["findings"]] == [
        ("sack-off", 1), ("fin-timeout", 1)]
    missing = call(tmp_path / "none.conf", bad)
    assert missing.returncode == 2 and "No such file" in missing.stderr
    assert "sack-off" in missing.stdout
    typo = tmp_path / "typo.conf"
    typo.write_text("net.ipv4.tcp_congestion_controll = cubic\n")
    assert "did you mean tcp_congestion_control?" in " ".join(call(typo).stdout.split())
    assert call("--memory", "8192", typo).returncode == 0
    typo.unlink()
    pattern = call(tmp_path / "*.none")
    assert pattern.returncode == 0 and not pattern.stderr
    assert pattern.stdout == (f"no file matches {tmp_path}/*.none: nothing to "
                              "check there\n")
    assert json.loads(call("--json", tmp_path / "*.none").stdout)["files"] == []
    assert "2 settings" in call(tmp_path / "*.conf").stdout
    mem = tmp_path / "m.conf"
    mem.write_text("net.ipv4.tcp_mem = 1000 2000 300000\n")
    assert call("--memory", "1024", mem).returncode == 1
    assert call("--memory", "8192", mem).returncode == 0
