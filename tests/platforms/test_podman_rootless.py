import pytest

from tare.errors import PlatformError
from tare.platforms import podman_rootless, registry


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


@pytest.mark.host
def test_detect_says_what_the_user_lacks():
    answer = registry.choose(["podman-rootless:nobody"])[0].detect()
    assert not answer.available
    assert answer.reason.startswith("nobody has 0 subordinate uids")
    assert answer.fix
