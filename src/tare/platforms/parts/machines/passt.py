"""passt: a guest's network by a program beside the machine, which opens the guest's connections as a user's own.

Unlike QEMU's own network (slirp) it has no TCP of its own: what a guest sends is handed to the host's sockets.
"""

from __future__ import annotations

import re
import socket
import subprocess
from collections.abc import Sequence

from tare.errors import HostError
from tare.host import distribution, processes
from tare.timeouts import stretched

PROGRAM = "passt"
#: Since then QEMU's network can be a connected socket of such a program (``-netdev stream``).
OF_QEMU = (7, 2)
LIMIT_S = 10.0
#: The link of its network namespace, as `bridge.Network.new_namespace` makes it.
LINK = "eth0"
#: A network that is nobody's, with a link that has an address of its own, as passt wants one.
_ALONE = f"ip link add {LINK} type bridge && ip addr add 192.0.2.1/24 dev {LINK} && ip link set {LINK} up"
_TRIAL_PORT = 20_000


def command(descriptor: int, port: int, address: str, gateway: str) -> list[str]:
    """Its command line in the foreground: one port of its network namespace is forwarded, TCP and UDP.

    ``descriptor``: its end of the connection to QEMU; ``address``: the guest's, with prefix length. Without addresses
    it would give the guest those of the link. By itself it maps the gateway's address to its own loopback.
    """
    inside, _, prefix = address.partition("/")
    guests = ["--interface", LINK, "--address", inside, "--netmask", prefix, "--gateway", gateway]
    ports = ["--tcp-ports", str(port), "--udp-ports", str(port)]
    alone = ["--no-map-gw", "--ipv4-only"]
    return [PROGRAM, "--foreground", "--stderr", f"--fd={descriptor}", *guests, *ports, *alone]


def require(qemu: str, address: str, gateway: str) -> str:
    """Its version, once it has run for a machine that is gone at once. Raises `HostError`.

    ``qemu``: what QEMU says to ``--version``; ``address``, ``gateway``: of a guest, as `command` takes them.
    """
    numbers = tuple(int(part) for part in re.findall(r"\d+", qemu)[:2])
    if numbers < OF_QEMU:
        raise HostError("passt needs QEMU 7.2 or newer (-netdev stream)", fix="a newer QEMU, or qemu-user (slirp)")
    if processes.find(PROGRAM) is None:
        raise HostError("passt is not installed", fix=distribution.install("passt"))
    ours, theirs = socket.socketpair()
    with theirs:
        ours.close()
        words = command(theirs.fileno(), _TRIAL_PORT, address, gateway)
        argv = ["unshare", "--net", "sh", "-c", f'{_ALONE}; exec "$@"', "sh", *words]
        pipe = subprocess.PIPE
        process = processes.start(argv, stdin=pipe, stdout=pipe, stderr=pipe, pass_fds=[theirs.fileno()])
    tried = processes.finish(process, argv, time_limit_s=LIMIT_S)
    if tried.code != 0 or tried.timed_out:
        raise HostError(
            f"passt does not come up: {last_words(tried)}", fix="see that its user may make user namespaces"
        )
    shown = processes.run([PROGRAM, "--version"], time_limit_s=5)
    return (shown.text.splitlines() or ["unknown"])[0].removeprefix(f"{PROGRAM} ")


def last_words(tried: processes.Finished) -> str:
    """Return why it ended: the last line that is its own, and not about the log that it may not reach."""
    if tried.timed_out:
        return f"it goes on for {stretched(LIMIT_S):.0f} s after its machine has gone"
    lines = tried.stderr.decode(errors="replace").strip().splitlines()
    messages: Sequence[str] = [line.strip() for line in lines if not line.startswith("Failed to send")]
    return messages[-1] if messages else f"exit code {tried.code}, and no message"
