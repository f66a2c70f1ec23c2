"""`tare clean --images` on a real host: an older version's image goes, with Docker's copy; the present one stays."""

import shutil
import sys

import pytest

from tare.host import lock, processes
from tare.image import image_build, own
from tare.platforms import platform_registry

pytestmark = [pytest.mark.host, pytest.mark.own_host]

MAIN = "from tare.cli import main; main()"


def tare(*words):
    return processes.run([sys.executable, "-P", "-c", MAIN, *words], time_limit_s=150, env=processes.own_environment())


def _in_docker():
    listed = processes.run(["docker", "images", "--format", "{{.Repository}}:{{.Tag}}"]).require().text
    return set(listed.split())


@pytest.mark.timeout(170)
def test_an_image_of_another_version_goes_with_dockers_copy_and_the_present_one_stays(tmp_path, monkeypatch):
    tools = image_build.ensure(image_build.agent_path(), progress=print)
    monkeypatch.setenv("TARE_HOME", str(tmp_path / "home"))
    older = tmp_path / "agent"
    shutil.copy(image_build.agent_path(), older)
    with older.open("ab") as file:
        file.write(b"another version")
    present, old = (own.bare(agent, tools, print) for agent in (image_build.agent_path(), older))
    [docker] = platform_registry.choose(["docker"])
    assert docker.detect().available
    for image in (present, old):
        docker.prepare(image)
    docker.close()
    its_tag, old_tag = (f"tare:{image.hash[:12]}" for image in (present, old))
    assert {its_tag, old_tag} <= _in_docker()

    shown = tare("clean", "--images", "--dry-run")
    assert f"would remove image own-{old.hash[:16]}, " in shown.text
    assert present.hash[:16] not in shown.text
    assert old.root.is_dir()

    with lock.held():
        refused = tare("clean", "--images")
    assert refused.code == 2
    assert "another tare is running: " in refused.stderr.decode()
    assert old.root.is_dir()

    done = tare("clean", "--images")
    assert done.code == 0, done.stderr
    assert f"removed image own-{old.hash[:16]}, " in done.text
    assert not old.root.parent.exists()
    assert present.root.is_dir()
    assert old_tag not in _in_docker()
    assert its_tag in _in_docker()
    assert "no image is unused" in tare("clean", "--images").text
