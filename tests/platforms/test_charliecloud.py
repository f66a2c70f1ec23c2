import pytest

from tare.host import processes
from tare.platforms import charliecloud, platform_registry


def test_the_command_is_a_users_with_nothing_of_roots_environment():
    argv = charliecloud.sandbox_argv("/run/user/tare/root", ["/agent", "serve"], "--write")
    program = argv.index("ch-run")
    assert argv[:2] == ["env", "--ignore-environment"]
    assert {"USER=tare", "HOME=/"} <= set(argv[2:program])
    assert argv[program + 1 :] == [
        "--uid=0", "--gid=0", "--no-passwd", "--private-tmp", "--cd=/", "--write",
        "/run/user/tare/root", "--", "/agent", "serve",
    ]  # fmt: skip
    assert "--reuid=2000000000" in charliecloud.USER


@pytest.mark.parametrize(("lacks", "package"), [("ch-run", "charliecloud-runtime"), ("setpriv", "util-linux")])
def test_what_is_missing_is_said_with_its_package(monkeypatch, lacks, package):
    monkeypatch.setattr(processes, "find", lambda program: None if program == lacks else f"/usr/bin/{program}")
    [platform] = platform_registry.choose(["charliecloud"])
    answer = platform.detect()
    assert (answer.available, answer.reason) == (False, f"{lacks} is not installed")
    assert package in answer.fix


def test_it_declares_what_it_shares_and_no_raw_sockets():
    [platform] = platform_registry.choose(["charliecloud"])
    assert {"processes", "host-ipc", "other-arm"} <= set(platform.open_by_design)
    assert not {"spoof", "sniff"} & set(platform.open_by_design)
