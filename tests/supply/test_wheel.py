"""The wheel as a user has it: installed into an environment of its own, on a PATH without compilers, and run."""

import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tare.errors import HostError
from tare.image import image_build

HERE = Path(__file__).parents[2]
#: What builds something: of the host's programs, all but these are on PATH.
BUILDERS = re.compile(
    r"(.*-)?(cc|gcc|g\+\+|c\+\+|cpp|clang|clang\+\+|ld|as|go|gofmt)(-[\d.]+)?"
    r"|make|cmake|git|cargo.*|rust.*|mmdebstrap|pip.*|uv|runsc"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel that `make wheel` builds, of this tree and with the agent that is there."""
    env = {**os.environ, "TARE_AGENT": str(image_build.agent_path())}
    done = subprocess.run(
        [HERE / "scripts" / "wheel"], env=env, capture_output=True, text=True, timeout=120, check=True
    )
    return HERE / done.stderr.strip().splitlines()[-1].removeprefix("wheel: ")


@pytest.mark.host
def test_the_wheel_has_all_that_the_tree_has_and_the_agent(wheel):
    listed = subprocess.run(["git", "ls-files", "src/tare"], cwd=HERE, capture_output=True, text=True, check=True)
    tree = {name.removeprefix("src/") for name in listed.stdout.split()}
    packed = zipfile.ZipFile(wheel)
    assert wheel.name.endswith(f"-py3-none-manylinux_2_17_{os.uname().machine}.whl")
    missing = {name for name in tree - {*packed.namelist()} if (HERE / "src" / name).exists()}
    assert missing <= {"tare/features/studies/literature/README.md"}
    assert packed.read("tare/image/tare-agent") == image_build.agent_path().read_bytes()
    assert packed.read("tare/host/requirements.lock") == (HERE / "requirements.lock").read_bytes()
    again = wheel.read_bytes()
    env = {**os.environ, "TARE_AGENT": str(image_build.agent_path())}
    subprocess.run([HERE / "scripts" / "wheel"], env=env, capture_output=True, timeout=120, check=True)
    assert wheel.read_bytes() == again  # the same tree makes the same wheel


@pytest.mark.host
def test_a_host_without_compiler_or_clone_weighs_by_the_wheel(wheel, tmp_path):
    """Its libraries are those of the environment that the tests run in: an index of packages is not asked."""
    place = tmp_path / "clean"
    venv.create(place, with_pip=False, symlinks=True)
    libraries = sysconfig.get_paths()["purelib"]
    [site] = place.glob("lib/python3*/site-packages")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(place), "install", "-q"]
    subprocess.run([*pip, "--no-index", "--no-deps", str(wheel)], check=True, timeout=120)
    # Files of a folder that is named like this are not followed, so that no editable tare is seen.
    (site / "libraries.pth").write_text(f"{libraries}\n")
    path = tmp_path / "path"
    path.mkdir()
    for program in Path("/usr/bin").iterdir():
        if not BUILDERS.fullmatch(program.name):
            (path / program.name).symlink_to(program)
    assert not {"gcc", "cc", "clang", "go", "git", "mmdebstrap"} & {entry.name for entry in path.iterdir()}
    # tare itself adds the sbin folders; compilers and Go are in none of them.
    env = {name: value for name, value in os.environ.items() if name in {"TARE_HOME", "TERM", "LANG"}}
    env |= {"PATH": str(path), "HOME": str(tmp_path), "COLUMNS": "200"}

    def tare(*words, code=0, **variables):
        argv = [place / "bin" / "tare", *words]
        done = subprocess.run(
            argv, cwd=tmp_path, env=env | variables, capture_output=True, text=True, timeout=150, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    where = subprocess.run(
        [place / "bin" / "python", "-c", "import tare.image.image_build as b; print(b.__file__, b.agent_path())"],
        cwd=tmp_path, env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert where.stdout.split() == [str(site / "tare/image/image_build.py"), str(site / "tare/image/tare-agent")]
    (tmp_path / "home").mkdir(mode=0o700)
    doctor = tare("doctor", "--all", "native", "runc", code=1, TARE_HOME=str(tmp_path / "home"))
    assert "✓  runc" in doctor
    assert "missing: mmdebstrap" in doctor  # there is no image in that home, and nothing to build one with
    assert "tare setup, or apt-get install mmdebstrap" in doctor
    assert "clang is not installed" in doctor
    assert "apt-get install clang libbpf-dev" in doctor
    tare("run", "-p", "runc", "-w", "startup", "--blocks", "2", "-o", "first.tare")
    report = tare("report", "first.tare", "--all", "--html", "again.html")
    assert "startup" in report
    assert "runc" in report
    assert (tmp_path / "again.html").stat().st_size > 100_000
    assert "nothing of tare's is left" in tare("clean")


def test_an_agent_for_another_machine_is_not_packed():
    other = {"x86_64": "aarch64", "aarch64": "x86_64"}[os.uname().machine]
    env = {**os.environ, "TARE_AGENT": sys.executable}
    argv = [HERE / "scripts" / "wheel", other]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert f"is no agent for {other}" in done.stderr


def test_an_agent_with_shared_libraries_is_not_packed():
    """Most root filesystems have not those of the machine where it was built: `tare doctor` found none that started."""
    env = {**os.environ, "TARE_AGENT": sys.executable}
    argv = [HERE / "scripts" / "wheel", os.uname().machine]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "needs shared libraries" in done.stderr


def test_without_an_agent_the_fix_is_the_wheel_for_this_machine(tmp_path, monkeypatch):
    """As after an installation from sources, which have none."""
    monkeypatch.delenv("TARE_AGENT", raising=False)
    monkeypatch.setattr(image_build, "__file__", str(tmp_path / "lib/site-packages/tare/image/image_build.py"))
    with pytest.raises(HostError, match=f"without an agent for {os.uname().machine}") as raised:
        image_build.agent_path()
    assert f"make wheel MACHINE={os.uname().machine}" in raised.value.fix


def test_the_agent_in_the_package_is_taken_unless_another_is_named(tmp_path, monkeypatch):
    packed = tmp_path / "tare-agent"
    packed.write_bytes(b"")
    monkeypatch.setattr(image_build, "__file__", str(tmp_path / "image_build.py"))
    monkeypatch.delenv("TARE_AGENT", raising=False)
    assert image_build.agent_path() == packed
    monkeypatch.setenv("TARE_AGENT", str(tmp_path / "mine"))
    with pytest.raises(HostError, match="mine is missing"):
        image_build.agent_path()
