"""What every platform keeps to, and what becomes of one that gives something else than the contract says."""

from types import SimpleNamespace

import pytest

from campaign.fakes import FakePlatform
from tare.errors import PlatformError
from tare.model import Resources
from tare.platforms import platform_contract, platform_registry
from tare.platforms.base import Availability, Observed, Prepared


@pytest.mark.parametrize("name", platform_registry.all_platforms())
def test_every_platform_of_the_tree_keeps_the_contract(name):
    [platform] = platform_registry.choose([name])
    assert platform_contract.problems(platform) == []
    assert platform_registry.package(name) == ""


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"name": "Not A Name"}, "not lower case words"),
        ({"name": 5}, "not lower case words"),
        ({"title": "two\nlines"}, "no title that is one line"),
        ({"title": None}, "no title that is one line"),
        ({"network_path": ""}, "no network_path"),
        ({"not_honoured": "a text"}, "no tuple of texts"),
        ({"not_honoured": (5,)}, "no tuple of texts"),
        ({"open_by_design": ["kmsg"]}, "a text for each door"),
        ({"open_by_design": {"kmsg": None}}, "a text for each door"),
        ({"has_agent": "yes"}, "neither True nor False"),
        ({"daemon": None}, "a daemon that is no text"),
        ({"needs_root": "no"}, "neither True nor False"),
        ({"without_root": True}, "runs without root, and needs root"),
        ({"start_limit_factor": 0}, "no number above 0"),
        ({"start_limit_factor": float("nan")}, "no number above 0"),
    ],
)
def test_breaches_are_named(changes, problem):
    platform = FakePlatform("odd")
    for name, value in changes.items():
        setattr(platform, name, value)
    assert problem in "; ".join(platform_contract.problems(platform))


@pytest.mark.parametrize("answer", [None, True, Availability(True, version=5), Availability(True, details={"a": 1})])
def test_a_detection_that_answers_something_else_is_an_error_with_words(answer):
    platform = FakePlatform("odd")
    platform.detect = lambda: answer
    with pytest.raises(TypeError, match="the detect of odd gave"):
        platform_contract.detected(platform)


@pytest.mark.parametrize("form", [None, Prepared("folder", -1), Prepared(None, 5), Prepared("folder", "5")])
def test_a_form_that_is_none_is_an_error_with_words(form):
    platform = FakePlatform("odd")
    platform.prepare = lambda image: form
    with pytest.raises(TypeError, match="the prepare of odd gave"):
        platform_contract.prepared(platform, None)


def test_a_launch_that_starts_nothing_is_an_error_with_words():
    platform = FakePlatform("odd")
    platform.launch = lambda spec, cleanup: None
    with pytest.raises(TypeError, match="the launch of odd gave NoneType, and not Instance"):
        platform_contract.launched(platform, SimpleNamespace(resources=Resources((0,), 1 << 30)), None)


def test_what_a_family_makes_is_held_to_the_contract_too(monkeypatch):
    def made(argument):
        return {"broken": FakePlatform("Odd"), "none": None}[argument]

    monkeypatch.setattr(platform_registry, "_built_in", lambda: [platform_registry._Family("odd:", made)])
    with pytest.raises(PlatformError, match="made something that has a name that is not lower case"):
        platform_registry.choose(["odd:broken"])
    with pytest.raises(PlatformError, match=r"made something that is no tare\.platforms\.base\.Platform"):
        platform_registry.choose(["odd:none"])
    with pytest.raises(PlatformError, match="odd:other cannot be made: KeyError: 'other'"):
        platform_registry.choose(["odd:other"])


@pytest.mark.parametrize(
    "given",
    [
        None,
        Observed("cache", 5),
        Observed("cache", "path", {"kernels": "x"}),
        Observed("cache", "path", facts={"disk": 5}),
    ],
)
def test_what_a_platform_shows_of_an_instance_is_texts_by_families(given):
    platform = FakePlatform("odd")
    platform.observed = lambda instance, read: given
    with pytest.raises(TypeError, match="the observed of odd"):
        platform_contract.observed(platform, None, str)


@pytest.mark.parametrize(
    ("keeps", "accounts", "why"),
    [(False, True, "its work is in no group here"), (True, False, "no control groups are delegated to this user")],
)
def test_a_quota_that_cannot_be_kept_is_said_before_anything_starts(keeps, accounts, why):
    platform = FakePlatform("odd")
    platform.keeps_quota, platform.launch = keeps, pytest.fail
    resources = Resources((0, 1), 1 << 30, cpu_quota=1.5)
    spec = SimpleNamespace(resources=resources, group=SimpleNamespace(accounts=accounts))
    with pytest.raises(PlatformError, match=f"odd keeps no CPU quota: {why}") as refused:
        platform_contract.launched(platform, spec, None)
    assert "--cpu-quota" in refused.value.fix


def test_those_whose_work_is_elsewhere_keep_no_quota():
    platforms = [*platform_registry.all_platforms().values(), *platform_registry.choose(["ssh:far.example"])]
    assert {platform.name for platform in platforms if not platform.keeps_quota} == {
        "ssh:far.example",
        "libvirt-xen",
        "xen-pv",
    }


def test_which_platforms_share_a_daemon_and_which_do_without_root():
    platforms = platform_registry.all_platforms().values()
    daemons = {}
    for platform in platforms:
        daemons.setdefault(platform.daemon, set()).add(platform.name.partition("-")[0])
    del daemons[""]
    assert daemons == {
        "dockerd": {"docker"},
        "containerd": {"containerd"},
        "lxd": {"lxd"},
        "incusd": {"incus"},
        "libvirtd": {"libvirt"},
        "xenstored": {"xen"},
        "kubelet": {"kubelet"},
    }
    assert {platform.name for platform in platforms if not platform.needs_root} == {
        "native", "native-plain", "native-userland", "native-veth",
        "bubblewrap", "bubblewrap-userns", "charliecloud", "podman-rootless",
    }  # fmt: skip
    assert {"docker-in-qemu", "runc", "podman", "nspawn"} <= {registered.name for registered in platforms}
