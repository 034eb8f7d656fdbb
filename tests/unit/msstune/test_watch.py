# SPDX-License-Identifier: GPL-2.0-only
"""watch: the strict parser of the library accepts the metrics, and so does a real
Prometheus where one is installed; the dashboard uses existing metrics only."""
import json
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
TOOL = TOP / "userspace/msstune/msstune.sh"
sys.path[:0] = [str(TOP / "userspace/msstune"), str(TOP / "tests/unit/lib")]

from msstune_facts import DEVICE, SENDER, facts  # noqa: E402
from prometheus_client import CollectorRegistry  # noqa: E402
from prometheus_client.openmetrics import exposition, parser  # noqa: E402
from msstune.causes import diagnose  # noqa: E402
from msstune.commands import metrics_server, openmetrics  # noqa: E402

GIVEN = facts(
    {"d_rwnd_limited": 1_000_000, "d_total_retrans": 7, "rtt": 10000},
    mssfrac={"stock_tx_bytes_available": 200, "stock_tx_bytes_lost": 50},
    softnet=[{"cpu": 3, "processed": 9, "dropped": 7, "squeezed": 0}],
    devices={"eth0": DEVICE | {"qdiscs": [{"kind": "fq", "drops": 4, "packets": 1,
                                           "options": {}}]},
             "veth1": DEVICE | {"kind": "veth", "qdiscs": [
                 {"kind": "fq", "drops": 2, "packets": 1, "options": {}}]},
             "veth2": DEVICE | {"kind": "veth", "qdiscs": [
                 {"kind": "fq", "drops": 3, "packets": 1, "options": {}}]}},
    profile=[{"direction": "rx", "flags": ["slow"], "share": .75,
              "stage": "copy"}])


def exported(*rounds):
    """Samples, by name and labels, after the strict parser."""
    totals = openmetrics.Totals()
    found = []
    for given in rounds:
        totals.add(given)
        found = list(openmetrics.metrics(given, diagnose.diagnose(given), totals))

    class Collector:
        def collect(self):
            return found
    registry = CollectorRegistry()
    registry.register(Collector())
    text = exposition.generate_latest(registry).decode()
    return {(s.name, *s.labels.values()): s.value for family in
            parser.text_string_to_metric_families(text) for s in family.samples}


def test_values():
    one = exported(GIVEN)
    assert one["msstune_sent_bytes_total",] == SENDER["d_bytes_acked"]
    assert one["msstune_busy_seconds_total",] == 2
    assert one["msstune_receive_window_limited_seconds_total",] == 1
    assert one["msstune_retransmitted_segments_total",] == 7
    assert one["msstune_backlog_dropped_packets_total", "3"] == 7
    assert one["msstune_queue_dropped_packets_total", "eth0"] == 4
    assert one["msstune_queue_dropped_packets_total", "virtual"] == 5
    assert one["msstune_diagnoses", "backlog-drops", "true"] == 1
    assert one["msstune_diagnoses", "unknown", "false"] == 0
    assert one["msstune_mssfrac_tx_lost_ratio", "stock"] == .25
    assert one["msstune_path_cost_ratio", "rx", "slow", "copy"] == .75
    # 12.5 MB/s x 10 ms of 3 MiB
    assert round(one["msstune_window_utilisation_ratio",], 3) == .04


def test_counters_add_up():
    two = exported(GIVEN, GIVEN)
    assert two["msstune_sent_bytes_total",] == 2 * SENDER["d_bytes_acked"]
    assert two["msstune_backlog_dropped_packets_total", "3"] == 14


def test_idle_is_zero_and_not_absent():
    idle = exported(facts(flows=[], flows_total=0))
    assert idle["msstune_sent_bytes_total",] == 0
    assert ("msstune_window_utilisation_ratio",) not in idle


def test_no_address_is_a_label():
    assert not [key for key in exported(GIVEN) if "10.0.0" in " ".join(key)]


def test_the_dashboard_uses_existing_metrics():
    text = (TOP / "userspace/msstune/grafana.json").read_text()
    known = {key[0] for key in exported(GIVEN)} | {
        "msstune_mssfrac_rx_lost_ratio"}
    asked = set(re.findall(r"msstune_\w+", " ".join(
        target["expr"] for panel in json.loads(text)["panels"]
        for target in panel["targets"])))
    assert asked and asked <= known


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url):
    """Poll until there is an answer."""
    end = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.read().decode()
        except OSError:
            assert time.monotonic() < end, f"no answer: {url}"
            time.sleep(0.1)  # polling interval


@contextmanager
def watching(port):
    with subprocess.Popen([TOOL, "watch", "--interval", "300ms", "--port",
                           str(port)], stdout=subprocess.PIPE) as process:
        try:
            process.stdout.readline()
            yield process
        finally:
            process.kill()


def wait_for(url, wanted):
    end = time.monotonic() + 60
    while wanted not in (text := get(url)):
        assert time.monotonic() < end, f"{wanted} is not in {text[:300]}"
        time.sleep(0.2)  # polling interval


def test_served_on_loopback():
    port = free_port()
    with watching(port):
        wait_for(f"http://127.0.0.1:{port}/metrics", "msstune_round_overhead")
        second = subprocess.run([TOOL, "watch", "--port", str(port)],
                                capture_output=True, text=True, check=False)
    assert second.returncode == 1 and "Address already in use" in second.stderr


def threads(process):
    text = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(r"Threads:\s+(\d+)", text)[1])


def test_half_open_requests():
    """Connections that send nothing cost few threads, and no scrape."""
    port = free_port()
    with watching(port) as process:
        url = f"http://127.0.0.1:{port}/metrics"
        wait_for(url, "msstune_round_overhead")
        silent = []
        for _ in range(200):
            silent.append(socket.socket())
            silent[-1].settimeout(5)
            try:
                silent[-1].connect(("127.0.0.1", port))
                silent[-1].sendall(b"GET /metrics HTTP/1.1\r\nX: ")
            except OSError:
                break   # the queue of the listener is full
            assert threads(process) < 20
        assert len(silent) > 60
        assert "msstune_connections" in get(url)
        for one in silent:
            one.close()


def test_a_request_that_never_ends(monkeypatch):
    """A byte now and then does not hold a worker."""
    monkeypatch.setattr(metrics_server, "LIMIT", 0.5)
    server = metrics_server.Server("127.0.0.1", 0, lambda accept: (b"x", "text"))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    slow = socket.create_connection(server.server_address)
    start = time.monotonic()
    with pytest.raises(OSError):
        while time.monotonic() - start < 20:
            slow.sendall(b"G")
            time.sleep(0.1)  # the client is slow
    assert not server._active
    server.shutdown()
    server.server_close()


def test_other_paths_and_methods():
    port = free_port()
    with watching(port):
        wait_for(f"http://127.0.0.1:{port}/metrics", "msstune_round_overhead")
        for request, status in ((b"GET /etc/passwd HTTP/1.0", b"404"),
                                (b"POST /metrics HTTP/1.0", b"501"),
                                (b"GET /metrics?a=b HTTP/1.0", b"200")):
            with socket.create_connection(("127.0.0.1", port)) as sock:
                sock.sendall(request + b"\r\n\r\n")
                assert status in sock.recv(100)


def test_a_real_prometheus_scrapes_it(tmp_path):
    program = shutil.which("prometheus")
    if not program:
        pytest.skip("no prometheus on PATH; apt-get install prometheus")
    port, own = free_port(), free_port()
    (tmp_path / "p.yml").write_text(
        "global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: msstune\n"
        f"  static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n")
    with watching(port), subprocess.Popen(
            [program, f"--config.file={tmp_path}/p.yml",
             f"--storage.tsdb.path={tmp_path}/data",
             f"--web.listen-address=127.0.0.1:{own}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            base = f"http://127.0.0.1:{own}/api/v1"
            wait_for(f"{base}/query?query=msstune_connections", '"value"')
            wait_for(f"{base}/query?query=msstune_sent_bytes_total", '"value"')
            assert '"health":"up"' in get(f"{base}/targets")
            for panel in json.loads((TOP / "userspace/msstune/grafana.json"
                                     ).read_text())["panels"]:
                expr = panel["targets"][0]["expr"].replace("$instance", ".*")
                url = f"{base}/query?" + urllib.parse.urlencode({"query": expr})
                assert '"status":"success"' in get(url)
        finally:
            process.kill()
