"""Who is on the tenant's side, by processes as they were seen on a host."""

from tare.features.kernel.reading.process_roles import ProcessFacts, judge


def seen(program, parent=1, own=False, kernels=False):
    return ProcessFacts(program, parent, own, kernels)


def sides(processes):
    return {side.pid: (side.role, side.counted) for side in judge(processes)}


def test_a_container_counts_and_what_watches_it_does_not():
    assert sides(
        {
            10: seen("containerd-shim-runc-v2"),
            11: seen("docker-proxy"),
            12: seen("tare-agent", 10, own=True),
            13: seen("sh", 12, own=True),
        }
    ) == {
        12: ("sandboxed", True),
        13: ("sandboxed", True),
        10: ("outside", False),
        11: ("outside", False),
    }


def test_gvisors_sentry_gofer_and_stubs():
    assert sides(
        {
            20: seen("runsc"),
            21: seen("runsc-gofer", 20, own=True),
            22: seen("runsc-sandbox", 20, own=True),
            23: seen("exe", 22, own=True),
            24: seen("exe", 23, own=True),
        }
    ) == {
        20: ("outside", False),
        21: ("gofer", True),
        22: ("sentry", True),
        23: ("stub", True),
        24: ("stub", True),
    }


def test_the_same_program_inside_and_outside():
    assert sides({30: seen("bwrap"), 31: seen("bwrap", 30, own=True)}) == {
        31: ("sandboxed", True),
        30: ("outside", False),
    }


def test_a_device_in_user_space_counts_wherever_it_is():
    assert sides({40: seen("conmon"), 41: seen("slirp4netns"), 42: seen("agent", 40, own=True)}) == {
        41: ("device", True),
        42: ("sandboxed", True),
        40: ("outside", False),
    }


def test_without_a_namespace_of_its_own_all_counts_but_the_kernels_own():
    assert sides({50: seen("qemu-system-x86_64"), 51: seen("vhost-50", 2, kernels=True)}) == {
        50: ("monitor", True),
        51: ("kernel thread", False),
    }
    assert sides({60: seen("tare-agent")}) == {60: ("sandboxed", True)}
