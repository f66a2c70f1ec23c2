"""The kernel's objects that are charged to groups of others."""

import pytest

from tare.campaign.instances import memory_usage
from tare.host import cgroup

STAT = "anon 1\nslab_reclaimable 999999\nslab_unreclaimable {}\nslab 7\npercpu 1000\n"


@pytest.mark.parametrize(
    ("known", "found"), [(["tare"], 902_000), (["tare/x1", "docker/daemon"], 601_000), ([], 1_903_000)]
)
def test_groups_of_instances_and_daemons_do_not_count(tmp_path, monkeypatch, known, found):
    for name, objects in (("tare", 1_000_000), ("docker", 300_000), ("user.slice", 600_000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "cpu.stat").write_text("usage_usec 1\n")
        (tmp_path / name / "memory.stat").write_text(STAT.format(objects))
    (tmp_path / "gone").mkdir()
    tree = cgroup.Hierarchies({}, tmp_path, (tmp_path,))
    monkeypatch.setattr(cgroup, "hierarchies", lambda: tree)
    assert memory_usage.objects_elsewhere(known) == found
    v1 = cgroup.Hierarchies({"cpu": tmp_path, "memory": tmp_path}, None, (tmp_path,))
    monkeypatch.setattr(cgroup, "hierarchies", lambda: v1)
    assert memory_usage.objects_elsewhere(known) == 0
