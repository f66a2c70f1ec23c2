from pathlib import Path

import pytest

from tare.host import cgroup, processes, state
from tare.host.daemons.runtimes import asked_version, crun, surroundings
from tare.host.kernel import mounts

V1 = "".join(
    f"32 31 0:29 / /sys/fs/cgroup/{name} rw,relatime - cgroup cgroup rw,{name}\n"
    for name in ("cpu", "cpuacct", "cpuset", "memory")
)
V2 = "41 31 0:38 / {} rw,relatime - cgroup2 cgroup2 rw\n"


def hierarchies(mountinfo):
    return cgroup.hierarchies_among(mounts.parse(mountinfo.encode()))


def test_the_v2_hierarchy_is_hidden_where_it_lies_beside_v1():
    within = surroundings(hierarchies(V1 + V2.format("/sys/fs/cgroup/unified")))
    assert within[:2] == ["unshare", "--mount"]
    assert within[-1] == "/sys/fs/cgroup/unified"


def test_one_kind_of_hierarchy_alone_needs_nothing():
    assert surroundings(hierarchies(V1)) == []
    assert surroundings(hierarchies(V2.format("/sys/fs/cgroup"))) == []


def test_who_starts_crun_by_a_path_gets_a_script_where_v2_must_be_hidden(monkeypatch, tmp_path):
    monkeypatch.setenv("TARE_HOME", str(tmp_path))
    monkeypatch.setattr(processes, "find", lambda program: f"/usr/bin/{program}")
    monkeypatch.setattr(cgroup, "hierarchies", lambda: hierarchies(V1 + V2.format("/sys/fs/cgroup/unified")))
    script = Path(crun())
    assert script.parent == tmp_path / "bin"
    assert script.stat().st_mode & 0o777 == 0o755
    assert script.read_text().endswith('/sys/fs/cgroup/unified /usr/bin/crun "$@"\n')
    monkeypatch.setattr(cgroup, "hierarchies", lambda: hierarchies(V1))
    assert crun() == "/usr/bin/crun"


@pytest.mark.host
def test_asking_for_the_version_makes_no_folder_of_cruns(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(state, "work", lambda: tmp_path / "work")
    printed = processes.run(asked_version("crun"), time_limit_s=5).text
    assert printed.startswith("crun version ")
    assert f"rundir: {tmp_path}/work\n" in printed
    assert asked_version("runc") == ["runc", "--version"]
