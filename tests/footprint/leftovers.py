"""Whether a counter's BPF programs are gone from the kernel when they should be."""

import ctypes
import os
import signal
import subprocess
import sys
import time


def _loaded(names):
    """Numbers and names of the BPF programs in the kernel that are called so."""
    library, programs, number = ctypes.CDLL("libbpf.so.1"), [], ctypes.c_uint32(0)
    while library.bpf_prog_get_next_id(number, ctypes.byref(number)) == 0:
        descriptor = library.bpf_prog_get_fd_by_id(number)
        info, length = ctypes.create_string_buffer(232), ctypes.c_uint32(232)
        if descriptor >= 0 and library.bpf_obj_get_info_by_fd(descriptor, info, ctypes.byref(length)) == 0:
            programs.append((number.value, info.raw[64:80].rstrip(b"\0")))
        if descriptor >= 0:
            os.close(descriptor)
    return {program for program in programs if program[1] in names}


def _gone(names, before):
    deadline = time.monotonic() + 10  # the kernel lets go of programs after a grace period
    while _loaded(names) - before and time.monotonic() < deadline:
        time.sleep(0.05)
    return _loaded(names) - before == set()


def check_nothing_stays(counter, names):
    """After a SIGKILL of a process that counts, and after a stop, nothing of these programs is in the kernel."""
    before, kind = _loaded(names), type(counter)
    code = f"import sys; from {kind.__module__} import {kind.__name__}\n"
    code += f"one = {kind.__name__}(); one.start('tare-test/killed'); print('up', flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert child.stdout.readline() == b"up\n"
        assert {name for _, name in _loaded(names) - before} == names
    finally:
        child.send_signal(signal.SIGKILL)
        child.communicate()
    assert _gone(names, before)
    counter.start("tare-test/stopped")
    counter.stop()
    counter.stop()
    assert _gone(names, before)
