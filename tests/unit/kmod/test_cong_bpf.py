# SPDX-License-Identifier: GPL-2.0-only
"""What clang makes of the congestion control for BPF does to a socket what gcc
makes of the same source for this machine, to the byte: each callback of random
connections runs once as BPF, instruction by instruction, and once natively.
guest/kmod/tick_cong_bpf.sh compares the two editions inside a kernel."""
import ctypes
import os
import subprocess
from pathlib import Path

import pytest

from ebpf import Object

TOP = Path(__file__).resolve().parents[3]
CALLBACKS = ["mssfrac_init", "mssfrac_acked", "mssfrac_avoid",
             "mssfrac_tso_segs", "mssfrac_ssthresh", "mssfrac_undo",
             "mssfrac_state"]
RETURNS = {"mssfrac_tso_segs", "mssfrac_ssthresh", "mssfrac_undo"}
STEPS = 400
FLAGS = ["-std=gnu11", "-O2", "-fPIC", "-shared", "-Wno-unknown-pragmas",
         "-Wno-attributes", "-D__TARGET_ARCH_x86", f"-I{TOP}/bpf"]


def compile_bpf(folder, kmod=TOP / "kmod"):
    out = folder / "cc.bpf.o"
    subprocess.run([os.environ.get("CLANG", "clang"), "-g", "-O2", "-target",
                    "bpf", "-mcpu=v3", "-D__TARGET_ARCH_x86", f"-I{TOP}/bpf",
                    f"-I{kmod}", "-c", "-o", out,
                    TOP / "bpf/mssfrac_cc.bpf.c"], check=True)
    return Object(out)


def compile_native(folder):
    out = folder / "native.so"
    subprocess.run(["gcc", *FLAGS, f"-I{TOP}/kmod", "-o", out,
                    TOP / "tests/unit/kmod/cong_random.c"], check=True)
    library = ctypes.CDLL(out)
    library.connection_begin.argtypes = [ctypes.c_void_p, ctypes.c_uint64]
    library.connection_next.argtypes = [ctypes.c_void_p]
    return library


@pytest.fixture(scope="module", name="native")
def fixture_native(tmp_path_factory):
    return compile_native(tmp_path_factory.mktemp("cong"))


def compare(bpf, native, seed):
    """The callbacks that ran; None after the first that differed."""
    size = ctypes.c_uint32.in_dll(native, "connection_size").value
    context = ctypes.c_uint32.in_dll(native, "connection_ctx").value
    memory = ctypes.create_string_buffer(size)
    at = ctypes.addressof(memory)
    native.connection_begin(at, seed)
    ran = []
    for step in range(STEPS):
        number = native.connection_next(at) if step else 0
        name = CALLBACKS[number]
        if not step:
            # Prepares the arguments only: the first callback is init.
            native.connection_next(at)
        before = memory.raw
        native_says = getattr(native, name)(ctypes.c_void_p(at + context))
        wanted = memory.raw
        memory.raw = before
        bpf_says = bpf.call(name, at + context)
        if memory.raw != wanted or (name in RETURNS and
                                    bpf_says != native_says & 0xffffffff):
            return None
        ran.append(name)
    return ran


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_bpf_does_what_the_source_says(tmp_path, native, first):
    bpf = compile_bpf(tmp_path)
    ran = []
    for seed in range(first, first + 10):
        one = compare(bpf, native, seed)
        assert one is not None, f"the connection of seed {seed} differs"
        ran += one
    assert set(ran) == set(CALLBACKS)


def test_a_difference_is_found(tmp_path, native):
    kmod = tmp_path / "kmod"
    kmod.mkdir()
    for file in (TOP / "kmod").glob("*.h"):
        text = file.read_text()
        if file.name == "cwnd.h":
            changed = text.replace("MSSFRAC_ALPHA_NUM\t9", "MSSFRAC_ALPHA_NUM\t10")
            assert changed != text
            text = changed
        (kmod / file.name).write_text(text)
    bpf = compile_bpf(tmp_path, kmod)
    assert None in [compare(bpf, native, seed) for seed in range(10)]
