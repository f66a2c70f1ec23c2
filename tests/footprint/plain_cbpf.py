"""Classic BPF, run the plain way: all data is known, one instruction after the other. What the evaluator is held to."""

import struct
from typing import NamedTuple


class Op(NamedTuple):
    code: int
    jt: int = 0
    jf: int = 0
    k: int = 0


def raw(program):
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def run(program, words):
    """The value that is returned. ``words``: the sixteen words of the data."""
    a = x = at = 0
    scratch = [0] * 16
    while True:
        code, jt, jf, k = program[at]
        at += 1
        by = x if code & 8 else k
        match code:
            case 0x20:
                a = words[k // 4]
            case 0x00:
                a = k
            case 0x60:
                a = scratch[k]
            case 0x80:
                a = 64
            case 0x01:
                x = k
            case 0x61:
                x = scratch[k]
            case 0x81:
                x = 64
            case 0x02:
                scratch[k] = a
            case 0x03:
                scratch[k] = x
            case 0x07:
                x = a
            case 0x87:
                a = x
            case 0x06:
                return k
            case 0x16:
                return a
            case 0x05:
                at += k
            case 0x15 | 0x1D:
                at += jt if a == by else jf
            case 0x25 | 0x2D:
                at += jt if a > by else jf
            case 0x35 | 0x3D:
                at += jt if a >= by else jf
            case 0x45 | 0x4D:
                at += jt if a & by else jf
            case 0x04 | 0x0C:
                a = (a + by) & 0xFFFFFFFF
            case 0x14 | 0x1C:
                a = (a - by) & 0xFFFFFFFF
            case 0x24 | 0x2C:
                a = (a * by) & 0xFFFFFFFF
            case 0x34 | 0x3C:
                if by == 0:
                    return 0
                a //= by
            case 0x44 | 0x4C:
                a |= by
            case 0x54 | 0x5C:
                a &= by
            case 0x64 | 0x6C:
                a = (a << (by & 31)) & 0xFFFFFFFF
            case 0x74 | 0x7C:
                a >>= by & 31
            case 0x84:
                a = -a & 0xFFFFFFFF
            case 0xA4 | 0xAC:
                a ^= by
            case _:
                raise AssertionError(hex(code))
