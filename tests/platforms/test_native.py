from tare.platforms import native


def test_a_host_is_known_by_its_release_file(tmp_path):
    release = tmp_path / "os-release"
    release.write_text('NAME="Debian GNU/Linux"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nID=debian\n')
    assert native.userland(release) == "Debian GNU/Linux 12 (bookworm)"
    assert native.userland(tmp_path / "missing") == "unknown"


def test_programs_on_a_filesystem_of_their_own_keep_the_userland_out(monkeypatch):
    monkeypatch.setattr(native.os.path, "ismount", lambda path: path == "/usr")
    monkeypatch.setattr(native.os, "geteuid", lambda: 0)
    answer = native.NativeUserland().detect()
    assert not answer.available
    assert answer.reason.startswith("/usr is a filesystem of its own")
    assert answer.fix


def test_only_the_baseline_is_the_baseline():
    assert [platform.name for platform in native.PLATFORMS if platform.baseline] == ["native"]
    assert [platform.name for platform in native.PLATFORMS if platform.by_default] == ["native"]
