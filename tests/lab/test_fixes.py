"""CVEs by the place in the kernel that their changes' titles name, from an excerpt of a real changelog."""

import gzip
import math
import tomllib
from pathlib import Path

import pytest

from tare.errors import UsageError
from tare.features.kernel.analysis.attack_profile import attack_profile, load_densities
from tare.features.kernel.commands.lab_command import weights
from tare.features.kernel.lab import fixes, kernel

CHANGELOG = Path(__file__).parent / "data" / "changelog-of-debians-kernel.txt"
#: Lines with code of some sources.
LINES = {
    "arch/x86/kernel/cpu/bugs.c": 10,
    "arch/x86/kvm/svm/nested.c": 30,
    "arch/x86/kvm/mmu/mmu.c": 40,
    "arch/x86/kvm/mmu/spte.c": 60,
    "arch/x86/kvm/x86.c": 50,
    "crypto/algif_aead.c": 8,
    "include/net/sock.h": 5,
    "kernel/events/core.c": 20,
    "kernel/sched/core.c": 20,
    "net/bridge/br_multicast.c": 25,
    "net/core/dev.c": 75,
    "net/ipv6/addrconf_core.c": 4,
    "net/netfilter/nf_tables_api.c": 12,
    "net/netfilter/nf_tables_core.c": 6,
    "net/sched/sch_api.c": 7,
    "net/unix/af_unix.c": 15,
    "virt/kvm/kvm_main.c": 20,
}
CONFIG = "CONFIG_NET=y\n# CONFIG_IPV6 is not set\n"


def test_each_cve_is_a_fix_once_with_its_whole_title():
    found_fixes = fixes.fixes(CHANGELOG.read_text())
    assert [fix.cve for fix in found_fixes] == [
        "CVE-2026-68480",
        "CVE-2026-53361",
        "CVE-2026-72237",
        "CVE-2026-64562",
        "CVE-2026-68428",
        "CVE-2026-72121",
        "CVE-2026-72118",
        "CVE-2026-74480",
        "CVE-2026-31431",
        "CVE-2019-1125",
    ]
    assert found_fixes[4].title == "[x86] KVM: x86/mmu: Fix use-after-free on vendor module reload (CVE-2026-68428)"
    assert fixes.versions(CHANGELOG.read_text()) == ("5.2.7-1", "6.1.187-1")  # before that one there is no fix


@pytest.mark.parametrize(
    ("title", "places"),
    [
        ("af_unix: Set gc_in_progress to true in unix_gc().", ["net/unix/af_unix.c"]),
        ("[x86] bugs: Make Safe-RET robust", ["arch/x86/kernel/cpu/bugs.c"]),
        ('[x86] Revert "bugs: Make Safe-RET robust"', ["arch/x86/kernel/cpu/bugs.c"]),
        ("net: bridge: stop fast-leave", ["net/bridge"]),
        ("net: do not send redirects", ["net"]),
        ("net/sched: serialize", ["net/sched"]),
        ("sched: of equal names the kernel's own comes first", ["kernel/sched"]),
        ("perf/core: a word that is no name", ["kernel/events/core.c"]),
        ("[x86] KVM: x86/mmu: beside a file of that name", ["arch/x86/kvm/mmu"]),
        ("KVM: of two folders", ["virt/kvm", "arch/x86/kvm"]),
        (
            "netfilter: nf_tables: of files that begin so",
            ["net/netfilter/nf_tables_api.c", "net/netfilter/nf_tables_core.c"],
        ),
        ("crypto: algif_aead - Revert to out-of-place", ["crypto/algif_aead.c"]),
        # What this kernel does not have, though it has a part of the words.
        ("[x86] KVM: nVMX: Hide shadow VMCS", []),
        ("[x86] perf/x86/amd/brs: Fix leakage", []),
        ("net: hns3: a driver", []),
        ("crypto: qat - a driver", []),
        ("can: bcm: add locking", []),
        ("ipv6: an option that is off", []),
        ("Fix a thing without a place", []),
    ],
)
def test_a_title_s_words_are_looked_up_one_below_the_other(title, places):
    assert list(fixes.Tree(LINES, CONFIG).find(title)) == places


def test_all_lines_together_have_as_many_fixes_as_were_found(tmp_path):
    densities = fixes.densities(CHANGELOG.read_text(), LINES, CONFIG)
    assert (densities.placed, densities.of) == (5, 10)
    file = tmp_path / "cves.toml"
    file.write_text(fixes.as_toml(densities))
    loaded = load_densities(file)
    assert "5.2.7-1 to 6.1.187-1" in loaded.title
    lines = {f"{path}:{number}" for path, count in LINES.items() for number in range(count)}
    whole = attack_profile(lines, loaded, lambda line: line.partition(":")[0])
    assert whole.score == pytest.approx(5, rel=1e-4)
    # One fix in 10 lines; one in 100, of which 40 are this file's; none.
    assert tomllib.loads(file.read_text())["density"]["arch/x86/kernel/cpu/bugs.c"] == pytest.approx(0.1)
    part = {f"arch/x86/kvm/mmu/mmu.c:{number}" for number in range(40)} | {"kernel/sched/core.c:1"}
    assert attack_profile(part, loaded, lambda line: line.partition(":")[0]).score == pytest.approx(0.4)


def test_what_is_known_of_a_folder_holds_for_the_files_in_it_too():
    text = "linux (6.1.1-1)\n\n    - net: Fix (CVE-2026-1)\n    - net: bridge: Fix (CVE-2026-2)\n"
    densities = fixes.densities(text, {"net/bridge/br.c": 10, "net/core/dev.c": 30})
    assert densities.by_path == {"net/": pytest.approx(1 / 40), "net/bridge/": pytest.approx(1 / 40 + 1 / 10)}
    assert math.isclose(30 * densities.by_path["net/"] + 10 * densities.by_path["net/bridge/"], 2)


def test_a_changelog_without_fixes_and_one_that_is_not_there_are_refused(tmp_path):
    with pytest.raises(UsageError, match="no CVE"):
        fixes.densities("linux (1-1) unstable\n\n    - net: Fix\n", LINES)
    with pytest.raises(UsageError, match="cannot be read") as refused:
        fixes.read(tmp_path / "none.gz")
    assert "linux-libc-dev" in refused.value.fix
    (tmp_path / "torn.gz").write_bytes(gzip.compress(b"linux")[:-4])
    with pytest.raises(UsageError, match="cannot be read"):
        fixes.read(tmp_path / "torn.gz")


def test_the_command_writes_a_new_file(tmp_path, monkeypatch, capsys):
    class Counted:
        config = CONFIG

        def lines(self):
            return {path: list(range(count)) for path, count in LINES.items()}

    monkeypatch.setattr(kernel, "ensure", lambda *_: Counted())
    file = tmp_path / "cves.toml"
    weights(file, CHANGELOG)
    assert "5 of 10 CVEs are in code of this kernel" in capsys.readouterr().out
    assert load_densities(file).density
    with pytest.raises(UsageError, match="never overwritten"):
        weights(file, CHANGELOG)
