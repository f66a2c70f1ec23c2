from pathlib import Path

import pytest

from tare.host import cgroup, processes, state
from tare.host.cgroup import parse_mounts
from tare.host.daemons.runtimes import asked_version, surroundings
from tare.platforms.crun import runtime

V1 = "".join(
    f"cgroup /sys/fs/cgroup/{name} cgroup rw,relatime,{name} 0 0\n" for name in ("cpu", "cpuacct", "cpuset", "memory")
)
V2 = "cgroup2 {} cgroup2 rw,relatime 0 0\n"


def test_the_v2_hierarchy_is_hidden_where_it_lies_beside_v1():
    within = surroundings(parse_mounts(V1 + V2.format("/sys/fs/cgroup/unified")))
    assert within[:2] == ["unshare", "--mount"]
    assert within[-1] == "/sys/fs/cgroup/unified"


def test_one_kind_of_hierarchy_alone_needs_nothing():
    assert surroundings(parse_mounts(V1)) == []
    assert surroundings(parse_mounts(V2.format("/sys/fs/cgroup"))) == []


def test_who_starts_crun_by_a_path_gets_a_script_where_v2_must_be_hidden(monkeypatch, tmp_path):
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    monkeypatch.setattr(processes, "find", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(cgroup, "hierarchies", lambda: parse_mounts(V1 + V2.format("/sys/fs/cgroup/unified")))
    script = Path(runtime())
    assert script.parent == tmp_path / "bin"
    assert script.stat().st_mode & 0o777 == 0o755
    assert script.read_text().endswith('/sys/fs/cgroup/unified /usr/bin/crun "$@"\n')
    monkeypatch.setattr(cgroup, "hierarchies", lambda: parse_mounts(V1))
    assert runtime() == "/usr/bin/crun"


@pytest.mark.host
def test_asking_for_the_version_makes_no_folder_of_cruns(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(state, "work", lambda: tmp_path / "work")
    printed = processes.run(asked_version("crun"), time_limit_s=5).text
    assert printed.startswith("crun version ")
    assert f"rundir: {tmp_path}/work\n" in printed
    assert asked_version("runc") == ["runc", "--version"]
