"""What the manifest says of the surroundings of an instance's programs, of real ones."""

import pytest

from tare.campaign.instances import program_environment
from tare.model import Arm, Family
from tare.platforms import platform_registry


@pytest.fixture
def facts(launcher):
    """The facts of a platform's instance."""

    def of(name):
        [platform] = platform_registry.choose([name])
        assert platform.detect().available
        platform.prepare(launcher.image)
        running = launcher.start(platform, Arm(name), measured=False)
        try:
            return program_environment.facts(platform, running)
        finally:
            running.stop()
            platform.close()

    return of


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.parametrize("name", ["native", "runc", "crun", "podman", "gvisor"])
def test_each_fact_is_read_and_is_what_the_platform_is_known_for(name, facts):
    seen = facts(name)
    assert seen["restrictions of /data"] == ("nosuid" if name == "gvisor" else "nosuid, nodev")
    assert seen["fsync on /"] == ("ignored" if name == "podman" else "kept")
    assert seen["filesystem of /tmp"] == ("tmpfs" if name == "gvisor" else "overlay")
    assert (seen["huge pages inside"] == "unknown") == (name == "gvisor")
    assert all(limit.replace(" ", "").isdigit() for limit in seen["socket limits inside"].values())
    assert "unknown" not in {seen["cpu scheduler"], seen["i/o scheduler of /data"]}


def test_a_root_that_drops_what_is_synced_is_remarked_for_what_may_sync_there():
    remarks = program_environment.remarks({"fsync on /": "ignored"})
    assert set(remarks) == {Family.STORAGE, Family.APPLICATION}
    assert program_environment.remarks({"fsync on /": "kept"}) == program_environment.remarks({}) == {}
