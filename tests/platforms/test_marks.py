import contextlib
import os
import socket
import struct
import threading
import time
from pathlib import Path

import pytest

from tare.platforms.watchers.marks import Datagram, FirstByte, echo_request, internet_checksum, is_reply

#: An echo reply of 127.0.0.1 with identity 0x1234, captured from a raw socket: IPv4 header of 20 bytes, then ICMP.
REPLY = bytes.fromhex("4500001cbaf900004001c1e57f0000017f0000010000edca12340001")


def test_the_checksum_of_rfc_1071():
    assert internet_checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0x220D  # the RFC's own example, complemented


def test_a_request_checks_out():
    packet = echo_request(0x1234, 1)
    assert internet_checksum(packet) == 0
    assert packet[0] == 8


def test_only_the_answer_to_our_request_counts():
    assert is_reply(REPLY, 0x1234)
    assert not is_reply(REPLY, 0x1235)
    assert not is_reply(REPLY[:24], 0x1234)


def test_the_first_byte_is_noted_and_not_read():
    readable, writable = os.pipe()
    watch = FirstByte(readable)
    before = time.monotonic_ns()
    os.write(writable, b"hello")
    noted_ns = watch.wait(5)
    assert before <= noted_ns <= time.monotonic_ns()
    assert os.read(readable, 10) == b"hello"
    os.close(readable)
    os.close(writable)


def test_a_stream_that_ends_without_a_byte_has_no_first_byte():
    readable, writable = os.pipe()
    watch = FirstByte(readable)
    os.close(writable)
    assert watch.wait(5) is None
    os.close(readable)


def test_the_datagram_with_the_token_has_the_kernels_time():
    datagram = Datagram("127.0.0.1")
    before = time.time_ns()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"of another start", ("127.0.0.1", datagram.port))
        sender.sendto(b"ours", ("127.0.0.1", datagram.port))
    received_ns = datagram.wait(b"ours", 5)
    assert before <= received_ns <= time.time_ns()
    assert datagram.wait(b"never", 0.05) is None
    datagram.close()


def listening():
    """The addresses and ports that this process's UDP sockets are bound to."""
    own = {link.readlink().name for link in Path("/proc/self/fd").iterdir() if link.is_symlink()}
    rows = [line.split() for line in Path("/proc/self/net/udp").read_text().splitlines()[1:]]
    return {row[1] for row in rows if f"socket:[{row[9]}]" in own}


def test_starts_are_heard_on_the_bridges_address_alone_until_one_is_on_another_machine():
    before = listening()
    with contextlib.closing(Datagram("127.0.0.1")) as datagram:
        assert listening() - before == {f"0100007F:{datagram.port:04X}"}
        far = datagram.far_port()
        assert (datagram.far_port(), far != datagram.port) == (far, True)
        assert listening() - before == {f"0100007F:{datagram.port:04X}", f"00000000:{far:04X}"}
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"ours", ("127.0.0.1", far))
        assert datagram.wait(b"ours", 5) is not None
    assert listening() == before


def test_the_reply_in_this_file_is_a_valid_packet():
    assert internet_checksum(REPLY[:20]) == 0
    assert internet_checksum(REPLY[20:]) == 0
    assert struct.unpack("!H", REPLY[2:4])[0] == len(REPLY)


@pytest.mark.host
def test_a_datagram_with_a_wrong_checksum_is_passed_over():
    datagram = Datagram("127.0.0.1")
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP) as liar:
            liar.sendto(struct.pack("!HHHH", 9, datagram.port, 13, 0xDEAD) + b"token", ("127.0.0.1", 0))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as honest:
            late = threading.Timer(0.3, honest.sendto, (b"token", ("127.0.0.1", datagram.port)))
            late.start()
            assert datagram.wait(b"token", 10) is not None
            late.join()
    finally:
        datagram.close()
