from types import SimpleNamespace

import pytest

from tare.errors import PlatformError
from tare.platforms import platform_registry, podman_rootless


def test_a_user_without_subordinate_ids_is_told_the_command_that_gives_some():
    with pytest.raises(PlatformError) as caught:
        podman_rootless.existing("nobody")
    assert "nobody has 0 subordinate uids in /etc/subuid" in caught.value.what
    assert caught.value.fix.startswith("usermod --add-subuids 100000-165535 nobody")


def test_root_and_strangers_are_not_rootless_users():
    with pytest.raises(PlatformError, match="root is not a rootless user"):
        podman_rootless.existing("root")
    with pytest.raises(PlatformError, match="there is no user 'nosuchuser'"):
        podman_rootless.existing("nosuchuser")


@pytest.fixture
def without_root(monkeypatch):
    monkeypatch.setattr(podman_rootless.own_namespaces, "inside", lambda: True)
    monkeypatch.setattr(podman_rootless.own_namespaces, "ids_outside", lambda: (1000, 1001))


@pytest.mark.usefixtures("without_root")
def test_without_root_podman_is_told_that_it_has_made_the_namespace_and_becomes_nobody_else():
    callers, other = platform_registry.choose(["podman-rootless", "podman-rootless:alice"])
    assert (callers.without_root, other.without_root) == (True, False)
    account = callers._account()
    assert (account.uid, account.gid) == (0, 0)
    entering = podman_rootless._room(account, {})
    assert "_CONTAINERS_USERNS_CONFIGURED=done _CONTAINERS_ROOTLESS_UID=1000 _CONTAINERS_ROOTLESS_GID=1001" in entering


@pytest.mark.usefixtures("without_root")
def test_without_root_a_tun_device_that_is_not_the_user_s_is_said_with_the_command(monkeypatch, tmp_path):
    monkeypatch.setattr(podman_rootless, "TUN", tmp_path)  # which nobody can open for writing
    monkeypatch.setattr(podman_rootless.processes, "find", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(podman_rootless, "default_network", lambda _: "slirp4netns")
    monkeypatch.setattr(podman_rootless.processes, "run", lambda *_, **__: SimpleNamespace(text=""))
    answer = platform_registry.choose(["podman-rootless"])[0].detect()
    assert answer.reason == f"slirp4netns needs {tmp_path}, which this user may not open"
    assert answer.fix.startswith(f"chmod 666 {tmp_path}")


@pytest.mark.parametrize(
    ("version", "networks"),
    [("podman version 5.4.2\n", "passt"), ("podman version 4.3.1\n", "slirp4netns"), (None, "passt slirp4netns")],
)
def test_what_is_missing_is_installed_with_the_network_of_that_podman(version, networks, monkeypatch):
    there = {"podman"} if version else set()
    monkeypatch.setattr(podman_rootless.processes, "find", lambda name: name if name in there else None)
    monkeypatch.setattr(podman_rootless.processes, "run", lambda *_, **__: SimpleNamespace(text=version))
    monkeypatch.setattr(podman_rootless.distribution, "install", lambda *packages, **_: " ".join(packages))
    assert platform_registry.choose(["podman-rootless"])[0].detect().fix == f"podman {networks} uidmap"


@pytest.mark.host
def test_detect_says_what_the_user_lacks():
    answer = platform_registry.choose(["podman-rootless:nobody"])[0].detect()
    assert not answer.available
    assert answer.reason.startswith("nobody has 0 subordinate uids")
    assert answer.fix


@pytest.mark.parametrize(
    ("version", "network"),
    [
        ("podman version 4.3.1\n", "slirp4netns"),  # Debian 12's
        ("podman version 5.4.2\n", "pasta"),  # Debian 13's
        ("podman version 10.0.0-dev\n", "pasta"),
        ("", "slirp4netns"),
    ],
)
def test_the_network_is_that_of_this_podman(version, network):
    assert podman_rootless.default_network(version) == network


def test_podman_5_without_pasta_says_which_package_has_it(monkeypatch, tmp_path):
    for name, prints in (("podman", "podman version 5.4.2"), ("newuidmap", ""), ("setpriv", "")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {prints}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(
        podman_rootless.processes, "find", lambda name: str(tmp_path / name) if (tmp_path / name).exists() else None
    )
    platform = podman_rootless.PodmanRootless("podman-rootless")
    answer = platform.detect()
    assert (answer.available, answer.reason) == (False, "pasta is not installed")
    assert "passt" in answer.fix
    assert "pasta" in platform.network_path
