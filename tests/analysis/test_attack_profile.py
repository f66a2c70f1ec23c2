from __future__ import annotations

from pathlib import Path

import pytest

from tare.errors import UsageError
from tare.features.kernel.analysis.attack_profile import BugDensities, attack_profile, load_densities
from tare.features.kernel.analysis.overlaps import place_of
from tare.model import Level

LINES = frozenset({"net/core/dev.c:1", "net/core/dev.c:2", "net/ipv4/tcp.c:9", "mm/mmap.c:3"})
PLACE = place_of(Level.LINES)


def test_without_densities_it_is_a_count() -> None:
    profile = attack_profile(LINES, BugDensities(), PLACE)
    assert (profile.score, profile.things, profile.by_default) == (4.0, 4, 4)
    assert BugDensities().uniform


def test_the_nearest_directory_decides_and_a_name_before_all() -> None:
    densities = BugDensities(default=0.25, density={"net/": 2.0, "net/core/dev.c": 3.0, "net/core/dev.c:2": 10.0})
    profile = attack_profile(LINES, densities, PLACE)
    assert profile.score == 3.0 + 10.0 + 2.0 + 0.25
    assert profile.by_default == 1
    assert not densities.uniform


def test_functions_by_file_and_by_how_a_name_begins() -> None:
    densities = BugDensities(density={"tcp_*": 5.0, "tcp_v4_*": 7.0, "net/ipv4": 2.0, "do_mmap": 3.0})
    place = place_of(Level.FUNCTIONS, {"tcp_sendmsg": "net/ipv4/tcp.c"})
    cases = {"tcp_sendmsg": 2.0, "tcp_v4_rcv": 7.0, "tcp_ack": 5.0, "do_mmap": 3.0, "schedule": None}
    assert {name: densities.of(name, place(name)) for name in cases} == cases


def test_a_directory_is_no_part_of_a_longer_name() -> None:
    densities = BugDensities(density={"net": 2.0})
    assert densities.of("network/x.c:1", "network/x.c") is None
    assert densities.of("net/x.c:1", "net/x.c") == 2.0


def test_profiles_are_compared_where_there_is_something_to_compare_with() -> None:
    whole, half = attack_profile(LINES, BugDensities(), PLACE), attack_profile({"mm/mmap.c:3"}, BugDensities(), PLACE)
    assert half.of(whole) == 0.25
    assert whole.of(attack_profile(set(), BugDensities(), PLACE)) is None


def test_weights_come_from_toml_and_csv(tmp_path: Path) -> None:
    toml, table = tmp_path / "fixes.toml", tmp_path / "fixes.csv"
    toml.write_text('title = "fixes"\ndefault = 0.5\n[density]\n"net/" = 2\n"mm/" = 1.5\n')
    table.write_text("name,density\nnet/,2\nmm/,1.5\ndefault,0.5\n")
    fixes, other = load_densities(toml), load_densities(table)
    assert fixes == BugDensities(title="fixes", default=0.5, density={"net/": 2.0, "mm/": 1.5})
    assert (other.title, other.default, other.density) == ("fixes.csv", 0.5, fixes.density)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.toml", "x = ", "is not TOML"),
        ("a.toml", "densities = {}", "there is no such key"),
        ("a.toml", "default = -1", "greater than or equal to 0"),
        ("a.toml", "[density]\n'net/' = inf", "finite"),
        ("a.csv", "a,b\n1,2\n", "two columns name and density"),
        ("a.csv", "", "two columns name and density"),
        ("a.csv", "name,density\nnet/,much\n", "valid number"),
    ],
)
def test_a_bad_file_is_named_with_what_is_wrong(tmp_path: Path, name: str, text: str, why: str) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(UsageError, match=why) as caught:
        load_densities(file)
    assert "\n" not in str(caught.value)
    assert str(file) in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        load_densities(tmp_path / "none.toml")


def test_csv_that_is_none_is_refused_in_one_line(tmp_path):
    file = tmp_path / "weights.csv"
    file.write_text("name,density\n" + "x" * 200_000 + ",1\n")
    with pytest.raises(UsageError, match=r"weights\.csv is not CSV: field larger"):
        load_densities(file)
