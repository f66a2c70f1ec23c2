"""What the time to the first byte is made of."""

from dataclasses import dataclass

from tare.campaign.instances.starts import parts

MS = 1_000_000


@dataclass
class Hello:
    clock_ns: int
    began_ns: int
    uptime_ns: int
    userspace_ns: int | None = None


def test_without_a_kernel_of_its_own_it_is_the_runtime_and_the_agent():
    hello = Hello(clock_ns=1000 * MS, began_ns=998 * MS, uptime_ns=77_000 * MS)
    assert parts(35 * MS, hello, own_kernel=False) == {"runtime": 33 * MS, "agent": 2 * MS}


def test_a_guest_has_its_kernel_and_its_userspace_too():
    hello = Hello(clock_ns=903 * MS, began_ns=900 * MS, uptime_ns=1000 * MS, userspace_ns=700 * MS)
    durations = parts(1400 * MS, hello, own_kernel=True)
    assert durations == {"runtime": 397 * MS, "kernel": 700 * MS, "userspace": 300 * MS, "agent": 3 * MS}
    assert sum(durations.values()) == 1400 * MS


def test_where_nobody_told_when_userspace_began_all_of_the_boot_is_the_kernels():
    hello = Hello(clock_ns=900 * MS, began_ns=900 * MS, uptime_ns=1000 * MS)
    assert parts(1400 * MS, hello, own_kernel=True) == {"runtime": 400 * MS, "kernel": 1000 * MS, "agent": 0}


def test_a_clock_that_runs_away_gives_no_parts():
    hello = Hello(clock_ns=900 * MS, began_ns=900 * MS, uptime_ns=2000 * MS)
    assert parts(1400 * MS, hello, own_kernel=True) == {}
