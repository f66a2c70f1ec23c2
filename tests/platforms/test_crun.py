from tare.host.cgroup import parse_mounts
from tare.platforms.crun import surroundings

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
