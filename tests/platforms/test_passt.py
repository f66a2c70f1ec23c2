"""passt as a machine's network: its words as data, why it is refused, and a real guest's packets by it."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from platforms.guests import MACHINE
from tare.errors import HostError
from tare.host import processes
from tare.model import Arm
from tare.platforms import platform_registry
from tare.platforms.parts.common.sidecar import Helper, with_helper
from tare.platforms.parts.machines import passt
from tare.platforms.parts.machines.qemu_line import Plug, command, stream
from tare.platforms.qemu import USER_NETWORK

#: What Debian 12's passt says on a host without a link that it could take (its log is not reached in a container).
REFUSED = b"""\
Failed to send 47 bytes to syslog
Don't run as root. Changing to nobody...
Failed to send 46 bytes to syslog
No external routable interface for IPv4
Failed to send 36 bytes to syslog
External interface not usable
"""
GUEST = USER_NETWORK[1:]


def _ended(code, stderr=b"", *, timed_out=False):
    return processes.Finished(("passt",), code, b"", stderr, 0, timed_out=timed_out)


def test_one_port_is_forwarded_and_the_guest_has_the_address_that_is_told_and_no_loopback_of_passts():
    argv = " ".join(passt.command(9, 20_105, "10.0.2.15/24", "10.0.2.2"))
    assert "--fd=9" in argv
    assert "--address 10.0.2.15 --netmask 24 --gateway 10.0.2.2" in argv
    assert "--tcp-ports 20105 --udp-ports 20105" in argv
    assert "--no-map-gw --ipv4-only" in argv


def test_qemu_hands_packets_to_its_end_of_the_socket():
    argv = command(replace(MACHINE, plug=Plug(stream(8), *USER_NETWORK)))
    assert argv[argv.index("-netdev") + 1] == "stream,id=net,addr.type=fd,addr.str=8"


def test_a_helper_and_its_machine_keep_nothing_open_of_each_others():
    with open("/dev/null") as helpers, open("/dev/null") as machines:  # noqa: PTH123 (descriptors that are inherited)
        listing = ["sh", "-c", 'for each in "$@"; do [ ! -e /proc/self/fd/$each ] || echo $0 has $each; done']
        descriptors = [str(helpers.fileno()), str(machines.fileno())]
        helper = Helper([*listing, "helper", *descriptors], helpers.fileno(), machines.fileno())
        script = with_helper(helper, ["sh", "-c", 'wait; "$@"', "sh", *listing, "machine", *descriptors])
        process = processes.start(script, stdout=-1, stderr=-1, stdin=-1, pass_fds=helper.descriptors())
        shown = processes.finish(process, script, time_limit_s=10).text
    assert sorted(shown.splitlines()) == [f"helper has {descriptors[0]}", f"machine has {descriptors[1]}"]


@pytest.mark.parametrize(
    ("tried", "why"),
    [
        (_ended(1, REFUSED), "External interface not usable"),
        (_ended(1), "exit code 1, and no message"),
        (_ended(-9, timed_out=True), "after its machine has gone"),
    ],
)
def test_why_it_does_not_come_up_is_its_own_last_line(tried, why):
    assert why in passt.last_words(tried)


def test_a_qemu_without_such_a_network_is_refused():
    with pytest.raises(HostError, match=r"QEMU 7\.2 or newer"):
        passt.require("5.2.0 (Debian 1:5.2+dfsg-11)", *GUEST)


def test_a_host_without_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(passt.processes, "find", lambda _: None)
    with pytest.raises(HostError) as caught:
        passt.require("7.2.22 (Debian)", *GUEST)
    assert caught.value.what == "passt is not installed"
    assert "passt" in caught.value.fix


@pytest.mark.host
@pytest.mark.own_host
def test_a_guests_packets_are_moved_by_it_and_it_ends_with_the_machine(launcher):
    platform = platform_registry.choose(["qemu-passt-tcg"])[0]
    answer = platform.detect()
    assert answer.available, answer.reason
    assert answer.details["network back end"] == "QEMU, without vhost-net: its network is passt"
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm(platform.name), measured=False)
    try:
        facts = platform.observed(running.instance, str).facts
        status = [Path(f"/proc/{pid}/status").read_text() for pid in running.instance.host_processes()]
    finally:
        running.stop()
    [of_passt] = [text for text in status if re.match(r"Name:\tpasst", text)]
    assert re.findall(r"^Cap(?:Inh|Prm|Eff|Amb):\t(\w+)$", of_passt, re.MULTILINE) == ["0" * 16] * 4
    assert re.search(r"^Uid:\t0\b", of_passt, re.MULTILINE) is None
    # Its bounding set is full, in a user namespace that it made: by these it executes nothing, and gains nothing of it.
    assert re.findall(r"^(?:NoNewPrivs|Seccomp):\t(\d)$", of_passt, re.MULTILINE) == ["1", "2"]
    assert facts["packets moved by"] == "the monitor, and passt beside it"
    shown = processes.run(["ps", "-e", "-o", "args="]).text
    assert f"--tcp-ports {running.instance.spec.port} " not in shown
