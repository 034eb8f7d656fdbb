# SPDX-License-Identifier: GPL-2.0-only
"""The arithmetic of Documentation/results/seeds-arithmetic.rst, from the numbers
that the five papers print: their errors, and the checks that they pass."""
import itertools
import json
import math
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
TOOL = TOP / "userspace/msstune/msstune.sh"
PAGE = (TOP / "Documentation/results/seeds-arithmetic.rst").read_text()

#: Preamble, Ethernet header, checksum and gap between frames; IPv4 and TCP
#: headers with timestamps.
FRAMING, HEADERS = 8 + 14 + 4 + 12, 20 + 20 + 12


def in_page(*numbers):
    text = " ".join(PAGE.split())
    for number in numbers:
        assert number in text, f"{number} is not in the page"


def payload_rate(line, mtu, headers=HEADERS):
    """The payload per second that a full line carries."""
    return line * (mtu - headers) / (mtu + FRAMING)


def percent(part, whole):
    return 100 * part / whole


# --- The five errors ---------------------------------------------------------

@pytest.mark.parametrize("window, lost, printed", [
    (48_000, 6.8, "6.8 %"), (48 * 1024, 9.0, "9.0 %"), (5.5 * 8948, 9.1, "9.1 %")])
def test_five_of_five_and_a_half_packets_lose_nine_percent(window, lost, printed):
    """SC2003, section 3.5.1: 48 KB and 8948 bytes, "nearly 17 %"."""
    segments = window / 8948
    assert math.floor(segments) == 5
    assert round(percent(segments - 5, segments), 1) == lost
    in_page(printed)
    # 17 % is the share of one packet in six, which the window never holds.
    assert segments < 6 and round(percent(1, 6)) == 17


def test_one_gigabit_carries_less_than_1007_mbit():
    """SDSC/GIAC, table 6, MTU 9000: MSS 8948."""
    limit = payload_rate(1e9, 9000)
    assert round(limit / 1e6, 1) == 990.0
    assert limit < payload_rate(1e9, 9000, HEADERS - 12) < 1e9 < 1.007e9
    # iperf counts what the socket took: its buffer is under way at the end.
    held = 33_554_432 * 8 / 10
    assert round(held / 1e6, 1) == 26.8
    assert limit + held > 1.007e9
    in_page("990.0 Mbit/s", "26.8 Mbit/s")


def test_new_york_gained_48_percent():
    """SDSC/GIAC, 1GigE findings: 584 to 822 and 535 to 793 Mbit/s."""
    assert round(percent(822 - 584, 584)) == 41      # "roughly 40 %"
    assert round(percent(793 - 535, 535)) == 48      # "33 %"
    # 33 % is the same difference as a share of the larger number.
    assert round(percent(793 - 535, 793)) == 33
    assert round(percent(822 - 584, 822)) == 29
    in_page("+48 %", "+41 %", "29 %")


def test_tcp_mem_counts_pages(tmp_path):
    """SDSC/GIAC, step b for Sun: 10,000,000, on hosts of 16 GB."""
    for name in ("tcp_rmem", "tcp_wmem"):
        assert 10_000_000 < 2**24, name              # bytes: 10 MB, as meant
    taken = 10_000_000 * 4096
    assert taken == 40_960_000_000 and taken > 2 * 16 * 2**30
    assert 32_768 * 4096 == 128 * 2**20              # the default that it prints
    in_page("40.96 GB", "128 MiB")
    path = tmp_path / "sun.conf"
    path.write_text("net.ipv4.tcp_mem = 10000000 10000000 10000000\n")
    done = subprocess.run([TOOL, "lint", "--memory", "16384", "--json", path],
                          capture_output=True, text=True, check=False)
    rules = {found["rule"] for found in json.loads(done.stdout)["findings"]}
    assert done.returncode == 1 and "unit-pages" in rules


def best_of(count, values):
    """Mean of the best of @count draws from @values, over all draws."""
    draws = [max(draw) for draw in itertools.product(values, repeat=count)]
    return sum(draws) / len(draws)


def test_a_peak_of_three_prefers_the_noisier_arm():
    """SDSC/GIAC, 10 Gigabit tests: the best of three samples counts."""
    quiet, noisy = (9, 10, 11), (7, 10, 13)
    assert best_of(1, quiet) == best_of(1, noisy) == 10
    assert round(best_of(3, quiet), 2) == 10.67
    assert best_of(3, noisy) == 12.0
    in_page("10.67", "12.00")
    # Seven of eight peaks of three lie above the median.
    above = [max(draw) for draw in itertools.product((0, 1), repeat=3)]
    assert sum(above) == 7
    # Normal noise: 3 / (2 sqrt(pi)) standard deviations too much; by integration.
    step = 1e-3
    points = [step * n for n in range(-8000, 8001)]
    mean = step * sum(
        x * 3 * (0.5 * (1 + math.erf(x / math.sqrt(2)))) ** 2
        * math.exp(-x * x / 2) / math.sqrt(2 * math.pi) for x in points)
    assert abs(mean - 3 / (2 * math.sqrt(math.pi))) < 1e-6
    assert round(mean, 2) == 0.85
    in_page("0.85 standard deviations")
    # Three of table 13's peaks under equal settings, at 10, 30 and 60 s.
    assert round(percent(max(7.89, 6.57, 7.86) - 6.57, 6.57)) == 20
    in_page("20 %")


# --- Further errors ----------------------------------------------------------

def test_six_million_packets():
    """CESNET, section 4: 6 million packets of 1500 bytes, "3.6 * 10^11 bits"."""
    assert 6e6 * 1500 * 8 == 7.2e10
    assert 3.6e11 / 7.2e10 == 5
    in_page("7.2 x 10^10")


def test_the_packet_generator():
    """SC2003, section 3.5.2: 5.5 Gbit/s of 8160 bytes, some 88,400 a second."""
    assert round(8160 * 8 * 88_400 / 1e9, 2) == 5.77
    assert round(5.5e9 / 8 / 8160, -1) == 84_250
    assert round(percent(4.11, 5.5)) == 75 and round(percent(4.11, 5.77)) == 71
    in_page("5.77 Gbit/s", "71 %")


def test_the_record_in_its_own_unit():
    """SC2003, sections 1, 4 and 5: "by 2.5 times"; metres times bits/s."""
    assert 10_037_000 * 2_380_000_000 == 23_888_060_000_000_000
    assert round(10_037 * 2.38 / (10_978 * 0.923), 2) == 2.36
    assert round(2.38 / 0.923, 2) == 2.58
    assert 2.38e9 * 3600 / 8 > 1e12                  # a terabyte in an hour
    assert 5.44e9 * 1800 / 8 > 1e12                  # Baker and Feng: in 30 min
    in_page("2.36", "2.58")


def test_the_payload_of_oc_48():
    """SC2003, section 4.2: 2.38 of 2.5 Gbit/s, "roughly 99 %"."""
    assert round(percent(2.38, 2.5), 1) == 95.2
    assert round(percent(2.38, 48 * 0.04992), 1) == 99.3   # of STS-48c's payload
    in_page("95.2 %", "99.3 %")


def test_the_product_behind_the_switch():
    """SC2003, section 3.3.1: 19 and 25 us one way, 10 Gbit/s."""
    assert 10e9 * 2 * 19e-6 / 8 == pytest.approx(47_500)
    assert 10e9 * 2 * 25e-6 / 8 == pytest.approx(62_500)
    assert round(percent(62_500, 64 * 1024)) == 95
    assert round(256 * 1024 / 47_500, 1) == 5.5
    assert round(256 * 1024 / (3.9e9 * 38e-6 / 8)) == 14
    in_page("62,500", "5.5", "14 times")


def test_a_round_trip_is_not_one_way():
    """SC2003, section 4.2: 180 ms, "approximately 10,000 times larger"."""
    assert round(180e-3 / 19e-6, -1) == 9470
    assert round(180e-3 / 38e-6, -1) == 4740
    in_page("4,740")


def test_latency_behind_the_switch():
    """SC2003, section 3.3.2: 19 to 23 and 25 to 28 us, "a total of 20 %"."""
    assert round(percent(23 - 19, 19)) == 21 and round(percent(28 - 25, 25)) == 12
    in_page("12 %")


def test_better_than_13_percent():
    """SC2003, section 3.5.2: 4.64 against 4.11 Gbit/s."""
    assert round(percent(4.64 - 4.11, 4.11), 1) == 12.9
    in_page("12.9 %")


def test_pci_x():
    """SC2003 has 8.5, CESNET (section 5) 8 Gbit/s for 64 bits at 133 MHz."""
    assert round(64 * 133e6 / 1e9, 1) == 8.5 and 64 * 100e6 == 6.4e9
    in_page("8.5 Gbit/s")


#: SDSC/GIAC: bytes or GBytes, seconds, Mbit/s as printed, of tables 4 to 10.
IPERF = {
    4: [(8.19 * 2**30, 10.0, 7030)], 5: [(1.12 * 2**30, 10.0, 943)],
    6: [(1.263 * 2**30, 10.0, 1007)], 7: [(1.10 * 2**30, 10.0, 932)],
    8: [(1.12 * 2**30, 10.0, 979)],
    9: [(720_655_667, 10.2, 584.433456), (643_869_824, 10.1, 535.455566)],
    10: [(1_030_627_328, 10.0, 822.837427), (993_869_824, 10.0, 793.544638)]}


def test_iperf_reports_that_contradict_themselves():
    """Bytes over time, with the rounding of both, against the printed rate."""
    wrong = set()
    for table, lines in IPERF.items():
        for count, seconds, rate in lines:
            half = 0.0005 if table == 6 else 0.005
            slack = half * 2**30 if table < 9 else 0
            low = (count - slack) * 8 / (seconds + 0.05) / 1e6
            high = (count + slack) * 8 / (seconds - 0.05) / 1e6
            if not low <= rate <= high:
                wrong.add(table)
    assert wrong == {5, 6, 7, 8, 9}
    # Decimal gigabytes would rescue table 6, and none of the others.
    assert 1.2625e9 * 8 / 10.05 < 1.007e9 < 1.2635e9 * 8 / 9.95
    for table in (4, 5, 7, 8):
        count, seconds, rate = IPERF[table][0]
        most = (count / 2**30 + 0.005) * 1e9 * 8 / (seconds - 0.05) / 1e6
        assert most < rate, table
    chicago, new_york = (8 * count / seconds / 1e6
                         for count, seconds, _ in IPERF[9])
    assert (round(chicago, 1), round(new_york, 1)) == (565.2, 510.0)
    in_page("565.2 and 510.0")


def test_943_of_941_mbit():
    """SDSC/GIAC, table 5, MTU 1500."""
    assert round(payload_rate(1e9, 1500) / 1e6, 1) == 941.5
    assert payload_rate(1e9, 9000) > 988e6           # Trapeze, on Alteon: possible
    assert payload_rate(10e9, 9000) > 9.32e9         # SDSC/GIAC, table 14: possible
    in_page("941.5")


#: Path, s, best single stream with "default settings" in Gbit/s (tables 9, 17,
#: 21, 25), and what it needs and what 174,760 bytes allow, as the page has it.
UNTUNED = [
    ("Chicago", 0.0627, 0.584, "4.6", "22.3"),
    ("Los Angeles", 0.00404, 5.90, "3.0", "346.1"),
    ("Houston", 0.0361, 3.35, "15.1", "38.7"),
    ("Washington", 0.0729, 2.83, "25.8", "19.2"),
]


@pytest.mark.parametrize("path, rtt, rate, needed, allowed", UNTUNED)
def test_default_buffers_cannot_carry_the_default_rows(path, rtt, rate, needed,
                                                       allowed):
    """The paper's own default: "4096 87380 174760"."""
    assert f"{rate * 1e9 * rtt / 8 / 1e6:.1f}" == needed
    assert f"{174_760 * 8 / rtt / 1e6:.1f}" == allowed
    row = next(line for line in PAGE.splitlines() if line.startswith(path + " "))
    assert row.split()[-2:] == [needed, allowed]


#: SDSC/GIAC, tables 27 to 30 and the four after it: captured Mbit/s of 576,
#: 1500 and 9000-byte frames, and the loss in % as printed, per generator rate.
#: "+": the values in brackets, after tuning.
CAPTURED = """
1000 933 7 987 1 998 0
1000 507 49 987 1 995 0
1000 973 3 990 1 999 0
10000 - - - - 3423 66
5000 - - 1644 67 3158 37
2500 846 66 2467 1 2499 0
1000 935 7 998 0 999 0
10000 635 94 1266 87 4881 52
10000+ 903 90 3277 67 6765 32
5000 647 87 2633 47 3821 24
5000+ 878 83 2521 50 2803 44
2500 766 70 2051 18 2079 17
2500+ 936 63 2395 4 2499 0
1000 820 18 834 17 831 17
1000+ 950 5 998 0 999 0
10000 5 99 16 99 4114 59
5000 5 99 633 87 4770 5
2500 5 99 1900 24 2499 0
1000 935 7 999 0 999 0
10000 908 91 1950 80 6394 36
10000+ 908 91 2420 76 5517 45
5000 858 83 1802 64 4871 3
5000+ 860 83 2205 56 4702 6
2500 941 62 2106 16 2499 0
2500+ 828 66 2453 2 2499 0
1000 567 43 999 0 995 0
1000+ 974 3 999 0 999 0
10000 1967 80 3726 63 5474 45
5000 1945 61 4096 18 4983 0
2500 1932 23 2488 0 2491 0
1000 998 0 997 0 997 0
"""


def captured():
    """(generator, tuned, frame, captured, loss as printed)."""
    for line in CAPTURED.split("\n"):
        rate, *cells = line.split() or [""]
        for frame, got, loss in zip((576, 1500, 9000), cells[::2], cells[1::2],
                                    strict=False):
            if got != "-":
                yield (int(rate.rstrip("+")), rate.endswith("+"), frame, int(got),
                       int(loss))


def test_losses_of_the_capture_tables():
    """loss = 100 (generator - captured) / generator, and whole percents."""
    cells = list(captured())
    assert len(cells) == 90
    off = [cell for cell in cells
           if abs(percent(cell[0] - cell[3], cell[0]) - cell[4]) > 0.55]
    assert len(off) == 9
    assert all(abs(percent(c[0] - c[3], c[0]) - c[4]) <= 1 for c in cells)
    in_page("81 of the 90")


def test_tuning_lost_more_packets_in_five_cells():
    tuned = list(captured())
    worse = []
    for before, after in itertools.pairwise(
            [line.split() for line in CAPTURED.strip().split("\n")]):
        if after[0] == before[0] + "+":
            worse += [(before[0], frame) for frame, was, now in zip(
                (576, 1500, 9000), before[1::2], after[1::2], strict=True)
                if int(now) < int(was)]
    assert sum(cell[1] for cell in tuned) == 24
    assert worse == [("5000", 1500), ("5000", 9000), ("10000", 9000),
                     ("5000", 9000), ("2500", 576)]
    in_page("5 of 24")


# --- Checks that the papers pass ---------------------------------------------

def test_windows_of_the_case_study():
    """SC2003, section 3.5.1 and figure 8."""
    assert round(percent(26 - 18, 26)) == 31
    advertised = 33_000 // 8948 * 8948
    usable = advertised // 8960 * 8960
    assert (advertised, usable) == (26_844, 17_920)
    assert round(percent(33_000 - advertised, 33_000)) == 19
    assert round(percent(advertised - usable, advertised)) == 33
    assert round(percent(33_000 - usable, 33_000)) == 46    # "nearly 50 %"


def test_gains_of_the_case_study():
    """SC2003, section 3.3.1 and 3.5.4; Baker and Feng; Trapeze."""
    assert round(percent(3.6 - 2.7, 2.7)) == 33
    assert round(percent(2.9 - 2.63, 2.63)) == 10
    assert percent(4.11 - 1, 1) > 300
    assert percent(4.11 - 1.853, 1.853) > 120 and percent(4.11 - 2.24, 2.24) > 80
    assert round(780 / 450, 2) == 1.73               # "almost doubles"


def test_the_generator_of_datagrams():
    """CESNET, sections 3, 5 and 6."""
    assert 2 * 265_926 + 4 == 531_856
    assert round(7.85 / 0.35) == 22
    assert round(10e9 * 0.010 / 8 / 1500) == 8333    # txqueue: "10000"
    assert round(10 ** (-3.2 / 10) * 1000) == 479    # uW; printed 482
    rate = 2.6e9 / (16_114 - HEADERS) / 8
    assert 0.85 < 179_823 / (rate * 10) < 1          # interrupts, if it took 10 s
