from dataclasses import replace

import pytest

from tare.campaign.execution import run_campaign
from tare.model import Arm, Family
from tare.platforms import native, platform_registry


def test_the_hosts_own_programs_are_named_by_its_distribution(monkeypatch):
    monkeypatch.setattr(native.os.path, "ismount", lambda _: False)
    monkeypatch.setattr(native.distribution, "here", lambda: {"PRETTY_NAME": "Debian GNU/Linux 12 (bookworm)"})
    assert native.NativeUserland().detect().details == {"userland": "Debian GNU/Linux 12 (bookworm)"}


def test_programs_on_a_filesystem_of_their_own_keep_the_userland_out(monkeypatch):
    monkeypatch.setattr(native.os.path, "ismount", lambda path: path == "/usr")
    answer = native.NativeUserland().detect()
    assert not answer.available
    assert answer.reason.startswith("/usr is a filesystem of its own")
    assert answer.fix


def test_only_the_baseline_is_the_baseline():
    assert [platform.name for platform in native.PLATFORMS if platform.baseline] == ["native"]
    assert [platform.name for platform in native.PLATFORMS if platform.by_default] == ["native"]


def test_second_baselines_take_part_by_default_where_their_family_is_weighed():
    def names(*families):
        return {platform.name for platform in run_campaign.platforms_for([], families)} & {
            "native-veth",
            "native-plain",
        }

    assert names(Family.CPU, Family.STARTUP) == set()
    assert names(Family.NETWORK) == names(Family.APPLICATION) == {"native-veth"}
    assert names(Family.STORAGE) == {"native-plain"}
    assert names(Family.STORAGE, Family.NETWORK) == {"native-veth", "native-plain"}
    assert [platform.name for platform in run_campaign.platforms_for(["runc"], [Family.STORAGE])] == ["native", "runc"]


@pytest.mark.host
@pytest.mark.own_host
def test_the_plain_roots_are_copies_on_the_hosts_own_filesystem(launcher):
    [platform] = platform_registry.choose(["native-plain"])
    running = launcher.start(platform, Arm("native-plain"), measured=False)
    try:
        session = running.session
        kind = session.execute(["stat", "-f", "-c", "%T", "/"]).stdout
        assert b"overlay" not in kind
        assert kind == session.execute(["stat", "-f", "-c", "%T", "/data"]).stdout
        assert session.execute(["sh", "-c", "echo mine >/etc/hostname"]).code == 0
        root = running.instance.spec.space.folder / "root"
        assert (root / "etc/hostname").read_text() == "mine\n"
    finally:
        running.stop()
    assert not root.exists()
    changed = launcher.image.root / "etc/hostname"
    assert not changed.exists() or changed.read_text() != "mine\n"


@pytest.mark.host
@pytest.mark.own_host
def test_a_plain_root_is_no_copy_of_a_link_to_the_image(launcher, tmp_path):
    (tmp_path / "root").symlink_to(launcher.image.root)  # as of an image that was moved to another disk
    elsewhere = replace(launcher, image=replace(launcher.image, root=tmp_path / "root"))
    [platform] = platform_registry.choose(["native-plain"])
    running = elsewhere.start(platform, Arm("native-plain"), measured=False)
    try:
        assert not (running.instance.spec.space.folder / "root").is_symlink()
        assert running.session.execute(["touch", "/of-the-sandbox"]).code == 0
    finally:
        running.stop()
    assert not (launcher.image.root / "of-the-sandbox").exists()
