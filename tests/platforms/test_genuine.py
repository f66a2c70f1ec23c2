"""A platform is what its name says: a program that is called like a runtime and is another is refused."""

import pytest

from tare.platforms import platform_registry
from tare.platforms.parts.bundles import genuine

#: As crun 1.8.1 and runc 1.1.5 say it (Debian 12).
CRUN = "crun version 1.8.1\ncommit: f8a096be060b22ccd3d5f3ebe44108517fbf6c30\nrundir: /run/crun\nspec: 1.0.0"
RUNC = "runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1\nspec: 1.0.2-dev"


@pytest.fixture
def called_runc(tmp_path, monkeypatch):
    """Puts a program called runc on PATH that says of itself what is given."""

    def put(says):
        program = tmp_path / "runc"
        program.write_text(f"#!/bin/sh\ncat <<'END'\n{says}\nEND\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        return program

    return put


def test_a_crun_that_is_called_runc_is_refused_with_what_it_is(called_runc):
    program = called_runc(CRUN)
    answer = platform_registry.choose(["runc"])[0].detect()
    assert not answer.available
    assert answer.reason == f"the program {program} says that it is crun, and not runc"
    assert "take the platform that it is" in answer.fix


def test_a_runtime_that_is_what_it_is_called_is_taken(called_runc):
    called_runc(RUNC)
    assert genuine.other("runc", "runc") is None
    assert platform_registry.choose(["runc"])[0].detect().version == "1.1.5+ds1"


def test_a_program_that_is_not_on_this_host_is_its_daemons_affair():
    assert genuine.other("/nowhere/runc", "runc") is None


@pytest.mark.host
@pytest.mark.parametrize("name", ["runc", "crun"])
def test_this_hosts_own_are_what_they_are_called(name):
    assert genuine.other(name, name) is None
