"""What the Docker daemon refuses with, and what tare says to do."""

import docker.errors
import pytest

from tare.errors import PlatformError
from tare.platforms import docker as platform


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (  # Docker 20.10 after `ip link del docker0`
            "failed to create endpoint tare-1e15cx0 on network bridge: adding interface vethf8e3ac6 to bridge docker0"
            " failed: could not find bridge docker0: route ip+net: no such network interface",
            "restart the Docker daemon",
        ),
        ("write /var/lib/docker/tmp/x: no space left on device", "free disk space"),
    ],
)
def test_a_refusal_that_is_known_has_its_fix(words, fix):
    with pytest.raises(PlatformError, match="the Docker daemon refuses") as refused, platform._sdk_errors():
        raise docker.errors.APIError("500 Server Error", explanation=words)
    assert words in refused.value.what
    assert fix in refused.value.fix


def test_a_rootless_daemon_is_refused_in_a_line():
    options = ["name=seccomp,profile=default", "name=rootless", "name=cgroupns"]
    answer = platform.unfit({"SecurityOptions": options, "CgroupDriver": "systemd"})
    assert not answer.available
    assert "rootless" in answer.reason
    assert "podman-rootless" in answer.fix
    assert platform.unfit({"SecurityOptions": options[:1], "CgroupDriver": "cgroupfs"}) is None


def test_any_other_is_told_as_it_is():
    with pytest.raises(PlatformError) as refused, platform._sdk_errors():
        raise docker.errors.APIError("500 Server Error", explanation="it is full moon")
    assert (refused.value.what, refused.value.fix) == ("the Docker daemon refuses: it is full moon", None)
