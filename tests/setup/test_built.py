"""What no package has is built by the host's real Go and Cargo, from files that are the ones that tare knows."""

import base64
import hashlib
import shutil
import zipfile

import pytest

from tare.errors import HostError
from tare.host import state
from tare.setup import gvisor_build, youki_build

MAIN = 'package main\n\nimport "gvisor.dev/gvisor/runsc/version"\n\nfunc main() { print(version.Shown()) }\n'
FILES = {
    "go.mod": f"module {gvisor_build._MODULE}\n\ngo 1.21\n",
    "go.sum": "",
    "runsc/main.go": MAIN,
    "runsc/version/version.go": "package version\n\nvar version string\n\nfunc Shown() string { return version }\n",
}


def h1(files):
    """Go's checksum of a module's files (golang.org/x/mod/sumdb/dirhash)."""
    lines = "".join(f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n" for name, text in sorted(files.items()))
    return f"h1:{base64.b64encode(hashlib.sha256(lines.encode()).digest()).decode()}"


@pytest.fixture
def proxy(tmp_path, monkeypatch):
    """A module proxy with a gVisor that prints its version, and a user's settings that switch every check off."""
    name = f"{gvisor_build._MODULE}@{gvisor_build.VERSION}"
    folder = tmp_path / "proxy" / gvisor_build._MODULE / "@v"
    folder.mkdir(parents=True)
    (folder / f"{gvisor_build.VERSION}.info").write_text(f'{{"Version": "{gvisor_build.VERSION}"}}')
    (folder / f"{gvisor_build.VERSION}.mod").write_text(FILES["go.mod"])
    with zipfile.ZipFile(folder / f"{gvisor_build.VERSION}.zip", "w") as packed:
        for file, text in FILES.items():
            packed.writestr(f"{name}/{file}", text)
    switched_off = {"GOSUMDB": "off", "GONOSUMDB": "*", "GOPRIVATE": "", "GOINSECURE": "*", "GOFLAGS": "-modcacherw"}
    places = {"GOPROXY": f"file://{tmp_path / 'proxy'}", "GOMODCACHE": str(tmp_path / "modules")}
    for variable, value in (switched_off | places | {"TARE_HOME": str(tmp_path / "home")}).items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(gvisor_build, "SUM", h1({f"{name}/{file}": text for file, text in FILES.items()}))
    monkeypatch.setattr(gvisor_build, "MOD_SUM", h1({"go.mod": FILES["go.mod"]}))
    monkeypatch.setattr(gvisor_build, "GO", "1.21")
    if gvisor_build._version(gvisor_build._go(), tmp_path) < (1, 21):
        pytest.skip("this host's Go is older, and fetches a newer one, of which the proxy has none")
    yield folder
    shutil.rmtree(tmp_path / "modules", ignore_errors=True)


@pytest.mark.host
@pytest.mark.timeout(300)
def test_gvisor_is_built_from_the_module_that_tare_knows(proxy):
    gvisor_build.build(lambda _: None)
    built = gvisor_build.processes.run([str(state.home() / "bin" / "runsc")])
    assert built.stderr.decode() == gvisor_build.VERSION
    noted = gvisor_build.processes.run([gvisor_build._go(), "version", "-m", str(state.home() / "bin" / "runsc")]).text
    assert f"{gvisor_build.VERSION}\t{gvisor_build.SUM}" in noted


@pytest.mark.host
@pytest.mark.timeout(300)
@pytest.mark.parametrize("changed", ["SUM", "MOD_SUM"])
def test_another_module_by_the_same_version_is_refused_whatever_the_environment_says(proxy, monkeypatch, changed):
    monkeypatch.setattr(gvisor_build, changed, h1({"another": ""}))
    with pytest.raises(HostError, match=r"does not have the checksum that tare expects|intercepted the download"):
        gvisor_build.build(lambda _: None)
    assert not (state.home_if_any() / "bin" / "runsc").exists()


def test_a_toolchain_without_a_checksum_is_not_fetched(monkeypatch, tmp_path):
    monkeypatch.setattr(gvisor_build, "GO_SUMS", {})
    monkeypatch.setattr(
        gvisor_build.processes, "run", lambda *_, **__: gvisor_build.processes.Finished((), 0, b"linux\nx\n", b"", 1)
    )
    with pytest.raises(HostError, match=r"no checksum of Go [\d.]+ for linux-x"):
        gvisor_build._newer("go", tmp_path)


@pytest.mark.parametrize("contents", [b"another crate", None])
def test_another_crate_of_youki_is_refused_before_it_is_built(tmp_path, contents):
    folder = tmp_path / "registry" / "cache" / "an-index"
    folder.mkdir(parents=True)
    if contents is not None:
        (folder / f"youki-{youki_build.VERSION}.crate").write_bytes(contents)
    with pytest.raises(HostError, match="does not have the checksum that tare expects"):
        youki_build.check_crate(tmp_path)


def test_the_crate_that_tare_knows_is_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(youki_build, "CRATE", hashlib.sha256(b"youki").hexdigest())
    for index in ("one", "two"):
        folder = tmp_path / "registry" / "cache" / index
        folder.mkdir(parents=True)
        (folder / f"youki-{youki_build.VERSION}.crate").write_bytes(b"youki")
    youki_build.check_crate(tmp_path)
    (folder / f"youki-{youki_build.VERSION}.crate").write_bytes(b"another")
    with pytest.raises(HostError):
        youki_build.check_crate(tmp_path)
