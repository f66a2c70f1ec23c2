"""The probe of a host, by this machine's own shell: which Python it finds, and what it says where there is none."""

import os
import shutil
import subprocess
import sys

import pytest

from tare.fleet.host_states import facts
from tare.fleet.playing import PLAYBOOK

TOOLS = ("awk", "date", "df", "dirname", "id", "uname")
#: What a Python 3.9 answers to the probe's two questions.
OLD = '#!/bin/sh\ncase "$*" in *"%d.%d"*) echo 3.9 ;; *) exit 1 ;; esac\n'


@pytest.fixture
def probe(tmp_path):
    """Run it with a PATH that has these programs alone."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in TOOLS:
        (programs / name).symlink_to(shutil.which(name))

    def look(pythons, named="", folder=tmp_path / "fleet"):
        for name, source in pythons.items():
            if isinstance(source, str):
                (programs / name).write_text(source)
                (programs / name).chmod(0o755)
            else:
                (programs / name).symlink_to(source[0])
        words = [
            "/bin/sh",
            "-c",
            (PLAYBOOK / "probe.sh").read_text(),
            "probe",
            str(folder),
            str(tmp_path / "home"),
            named,
        ]
        done = subprocess.run(words, env={"PATH": str(programs)}, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return facts(done.stdout)

    return look


def test_a_python_that_will_do_is_found_with_its_version(probe, tmp_path):
    found = probe({"python3": [sys.executable]})
    assert found["version"] == "{}.{}".format(*sys.version_info)
    assert found["machine"] == os.uname().machine
    assert int(found["free_kib"]) > 0
    assert "lack" not in found or os.geteuid() != 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bin"]  # it makes nothing


def test_a_host_without_a_python_says_so(probe):
    assert "no Python is installed" in probe({})["lack"] or os.geteuid() != 0


def test_an_old_python_is_named_with_its_version(probe):
    assert probe({"python3": OLD})["lack"].startswith("its Python is 3.9" if os.geteuid() == 0 else "its")


def test_a_newer_python_beside_an_old_one_is_taken(probe):
    found = probe({"python3": OLD, "python3.12": [sys.executable]})
    assert found["python"].endswith("/python3.12")


def test_the_interpreter_of_the_inventory_comes_first(probe):
    assert probe({"python3": OLD}, named=sys.executable)["python"] == sys.executable


def test_what_is_there_is_listed_by_name(probe, tmp_path):
    (tmp_path / "fleet" / "packages-3.11-x86_64-0123456789abcdef").mkdir(parents=True)
    (tmp_path / "home" / "images" / "base-0123").mkdir(parents=True)
    found = probe({"python3": [sys.executable]})
    assert "packages-3.11-x86_64-0123456789abcdef" in found["has"].split()
    assert found["images"].split() == ["base-0123"]
