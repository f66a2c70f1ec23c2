"""Names of platforms and workloads as people type them."""

import pytest

from tare.cli.commands import names
from tare.errors import UsageError
from tare.platforms import platform_registry


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["runc,docker"], ["runc", "docker"]),
        (["Docker", "gVisor"], ["docker", "gvisor"]),
        (["runsc, systemd-nspawn"], ["gvisor", "nspawn"]),
        (["ALL"], ["all"]),
        (["ssh:root@one,two"], ["ssh:root@one,two"]),
        (["runc:./build,1/runc"], ["runc:./build,1/runc"]),
        (["nosuch"], ["nosuch"]),  # which is told with the nearest names
        ([], []),
        (None, []),
        (["runc,,"], ["runc"]),
    ],
)
def test_platforms(typed, meant):
    assert names.platforms(typed) == meant


@pytest.mark.parametrize("value", ["", " ", ",", "\t"])
@pytest.mark.parametrize("read", [names.platforms, names.workloads])
def test_a_shells_variable_that_is_not_set_is_not_the_default(read, value):
    with pytest.raises(UsageError, match="an option for names has an empty value"):
        read(["runc", value])


def test_a_word_with_several_readings_is_refused_with_all_of_them():
    with pytest.raises(UsageError, match="Kata may be several platforms") as error:
        names.platforms(["runc,Kata"])
    assert error.value.fix == "name one: containerd-kata, containerd-cri-kata"


def test_what_platforms_are_also_called_is_the_name_of_none_and_means_ones_that_there_are():
    known = platform_registry.all_platforms()
    for alias, meant in names.ALIASES.items():
        assert alias not in known
        assert set(meant) <= set(known), alias


@pytest.mark.parametrize(
    ("typed", "meant"),
    [(["Redis,cpu"], ["redis", "cpu"]), (["app:a,b.toml"], ["app:a,b.toml"]), (["./a,b.toml"], ["./a,b.toml"])],
)
def test_workloads(typed, meant):
    assert names.workloads(typed) == meant
