# SPDX-License-Identifier: GPL-2.0-only
"""bpf/arm.h, by which pathprof --arm tells a connection's arm, against the
rule of mssab arm."""
import ctypes
import random
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(TOP / "userspace/mssab"))
from mssab.experiment import arm as rule  # noqa: E402


@pytest.fixture(scope="module", name="slot")
def slot_fixture(tmp_path_factory):
    """arm_slot() of two ends in 18 bytes each."""
    out = tmp_path_factory.mktemp("arm")
    (out / "arm.c").write_text(f"""
        #include <string.h>
        #include <linux/types.h>
        #include "{TOP}/bpf/arm.h"
        __u32 slot(const char *one, const char *other, __u32 seed)
        {{
            struct arm_end a, b;
            memcpy(a.addr, one, 16); memcpy(&a.port, one + 16, 2);
            memcpy(b.addr, other, 16); memcpy(&b.port, other + 16, 2);
            return arm_slot(&a, &b, seed);
        }}""", encoding="utf-8")
    subprocess.run(["cc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", "-o",
                    out / "arm.so", out / "arm.c"], check=True)
    return ctypes.CDLL(out / "arm.so").slot


def test_of_the_manual(slot):
    ends = [rule.endpoint(text) for text in
            ("10.9.0.1:40000", "10.9.0.2:5201")]
    assert slot(*ends, 7) == slot(*ends[::-1], 7) == 10


def test_of_any_connection(slot):
    rng = random.Random(1)
    seen = set()
    for _ in range(3000):
        one = rng.randbytes(18)
        # Ends that differ late, or in the port alone, order as bytes do.
        same = rng.choice([0, 5, 8, 15, 16, 17])
        other = one[:same] + rng.randbytes(18 - same)
        seed = rng.choice([0, 7, 2**32 - 1, rng.getrandbits(32)])
        wanted = rule.slot(one, other, seed)
        assert slot(one, other, ctypes.c_uint32(seed)) == wanted
        seen.add(wanted)
    assert seen == set(range(100))
