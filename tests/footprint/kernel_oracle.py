"""Asks the kernel what a filter answers, and lets no call run. A program of its own: `test_kernel_agrees` starts it.

The very same program is installed, but for two things. Whatever it would do becomes an error with a number that says
so: what a filter answers counts from its first return on, and nothing is executed. And only calls with a mark as their
sixth argument are put to it, so that Python can go on. Reads one JSON object a line, {"filter": hex, "abi": ...,
"calls": [[number, [five arguments]], ...]}, and answers each with the list of what the filter returned.
"""

import ctypes
import json
import mmap
import os
import struct
import sys

MARK = 0x7A5E0001
#: By action, the error that stands for it; errors of filters are far below.
STANDS_FOR = {
    0x80000000: 4001,
    0x00000000: 4002,
    0x00030000: 4003,
    0x7FC00000: 4004,
    0x7FF00000: 4005,
    0x7FFC0000: 4006,
    0x7FFF0000: 4000,
}
ERRNO = 0x00050000
BY_ERROR = {error: action for action, error in STANDS_FOR.items()}
#: eax = edi; all arguments 0 but the sixth, the mark in ebp; int 0x80. Returns eax.
INT80 = bytes.fromhex("5355 89f8 31db 31c9 31d2 31f6 31ff bd") + struct.pack("<I", MARK) + bytes.fromhex("cd80 5d5b c3")

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.syscall.argtypes = (ctypes.c_long,) * 7


class Fprog(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("program", ctypes.c_void_p)]


def harmless(raw):
    """The program with errors in the place of actions, for marked calls alone."""
    program = [(0x20, 0, 0, 56), (0x15, 1, 0, MARK), (0x06, 0, 0, 0x7FFF0000), (0x00, 0, 0, 0)]
    for code, jt, jf, k in struct.iter_unpack("=HBBI", raw):
        action = k & 0xFFFF0000
        assert code != 0x16, "what is calculated cannot be exchanged"
        if code == 0x06 and action != ERRNO:
            program.append((code, jt, jf, ERRNO | STANDS_FOR[action]))
        else:
            program.append((code, jt, jf, k))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def install(raw):
    buffer = ctypes.create_string_buffer(raw, len(raw))
    fprog = Fprog(len(raw) // 8, ctypes.addressof(buffer))
    none = ctypes.c_ulong(0)
    assert libc.prctl(38, ctypes.c_ulong(1), none, none, none) == 0
    assert libc.prctl(22, ctypes.c_ulong(2), ctypes.byref(fprog), none, none) == 0, ctypes.get_errno()


def native(number, arguments):
    ctypes.set_errno(0)
    result = libc.syscall(number, *(ctypes.c_long(argument).value for argument in arguments), MARK)
    return ctypes.get_errno() if result == -1 else 0


def legacy():
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(INT80)
    enter = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    return lambda number, _, page=page: -enter(number)  # the page must stay


def answer(error):
    return BY_ERROR.get(error, ERRNO | error)


def ask(question):
    """In a child, which the filter stays in."""
    ours, theirs = os.pipe()
    if os.fork() == 0:
        os.close(ours)
        call = legacy() if question["abi"] == "i386" else native
        install(harmless(bytes.fromhex(question["filter"])))
        answers = [answer(call(number, arguments)) for number, arguments in question["calls"]]
        with os.fdopen(theirs, "w") as out:
            json.dump(answers, out)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours) as answers:
        text = answers.read()
    _, status = os.wait()
    assert status == 0, f"the child ended with {status}"
    return text


if __name__ == "__main__":
    for line in sys.stdin:
        print(ask(json.loads(line)), flush=True)
