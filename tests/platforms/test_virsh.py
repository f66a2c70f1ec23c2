"""A domain's end, as `virsh event` tells of it."""

import subprocess

from tare.platforms.parts.libvirt import virsh

#: As virsh 9.0 prints them.
STARTED = "event 'lifecycle' for domain 'tare-ab1x2': Started Booted"
STOPPED = "event 'lifecycle' for domain 'tare-ab1x2': Stopped Destroyed"


def says(*lines):
    script = "".join(f'echo "{line}"; ' for line in lines)
    return subprocess.Popen(["sh", "-c", f"{script} exec sleep 60"], stdout=subprocess.PIPE)


def test_a_domains_end_is_told_and_its_beginning_is_not_its_end():
    process = says(STARTED, STOPPED)
    virsh.wait_stopped(process)
    assert process.poll() is None, "what follows is not waited for"
    process.kill()
    process.wait()
    assert not virsh.STOPPED.search(STARTED.encode())


def test_a_watcher_that_ends_is_an_end_too():
    process = subprocess.Popen(["echo", STARTED], stdout=subprocess.PIPE)
    virsh.wait_stopped(process)
    assert process.wait() == 0
