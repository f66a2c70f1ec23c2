"""A user's own application for real: a container image with one static program in it, brought by its file alone."""

import hashlib
import io
import ipaddress
import json
import os
import re
import sys
import tarfile
import threading
from pathlib import Path

import pytest

from tare.campaign.execution import app_check, provenance
from tare.cli import main
from tare.cli.application_check import try_once
from tare.errors import TareError, UsageError
from tare.image import container_images, image_build
from tare.store import read_store
from tare.workloads import workload_registry
from tare.workloads.own import file, foreign

pytestmark = [pytest.mark.host, pytest.mark.own_host]

FILE = """\
name = "tiny"
[source]
image = "tiny.oci"
[start]
env = { PORT = "{port}" }
command = ["/srv/tiny", "answer", "http", "{port}", "64", "{address}"]
[ready]
http = "/"
[load]
built_in = "http-get"
[parameters]
time_s = 0.2
"""

ASK = '"ask", "http", "{address}", "{port}", "{seconds}", "0", "0", "/"'
METRIC = """\
[metrics.answered]
regex = '^answered ([0-9]+)'
unit = "pages"
better = "higher"
"""


def listening():
    """The open TCP ports of this host: address and port."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    pairs = [row[1].split(":") for row in rows if row[3] == "0A"]
    return {(str(ipaddress.ip_address(bytes.fromhex(address)[::-1])), port) for address, port in pairs}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the layout of an image: no shell, no libraries, one program and a user."""
    folder = tmp_path_factory.mktemp("own")
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for name, data, mode in (
            ("srv/tiny", image_build.agent_path().read_bytes(), 0o755),
            ("etc/passwd", b"tiny:x:900:900::/srv:/none\n", 0o644),
        ):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), mode
            tar.addfile(info, io.BytesIO(data))

    def blob(data, **fields):
        digest = hashlib.sha256(data).hexdigest()
        place = folder / "tiny.oci/blobs/sha256"
        place.mkdir(parents=True, exist_ok=True)
        (place / digest).write_bytes(data)
        return {"digest": f"sha256:{digest}", "size": len(data), **fields}

    machine = container_images.ARCHITECTURES.get(os.uname().machine, os.uname().machine)
    packed = blob(layer.getvalue())
    config = {
        "architecture": machine,
        "os": "linux",
        "config": {"User": "tiny", "WorkingDir": "/srv"},
        "rootfs": {"type": "layers", "diff_ids": [packed["digest"]]},
    }
    manifest = {"config": blob(json.dumps(config).encode()), "layers": [packed]}
    (folder / "tiny.oci/index.json").write_text(json.dumps({"manifests": [blob(json.dumps(manifest).encode())]}))
    return folder


def _written(folder, before="", after=""):
    place = folder / "tiny.toml"
    assert before in FILE
    place.write_text(FILE.replace(before, after, 1))
    return place


DOCKERFILE = """\
FROM scratch
COPY tiny /srv/tiny
EXPOSE 8080
USER tiny
HEALTHCHECK --start-period=10s CMD ["/srv/tiny", "ask", "http", "127.0.0.1", "8080", "0.1", "0", "0", "/"]
ENTRYPOINT ["/srv/tiny"]
CMD ["answer", "http", "8080", "64", "0.0.0.0"]
"""


@pytest.mark.parametrize("platform", ["native", "runc"])
def test_an_application_of_a_dockerfile_runs_and_its_health_check_says_when(folder, platform):
    (folder / "Dockerfile").write_text(DOCKERFILE)
    text, mistakes = foreign.converted(folder / "Dockerfile", "tiny.oci")
    assert mistakes == []
    place = folder / "from.toml"
    place.write_text(f'{text}[load]\nbuilt_in = "http-get"\n[parameters]\ntime_s = 0.2\n')
    result = app_check.once(workload_registry.get(f"app:{place}"), 512 << 20, lambda line: None, platform)
    assert {sample.metric: sample.value for sample in result.measured.samples}["rate"] > 1


@pytest.mark.parametrize("platform", ["native", "runc"])
def test_an_image_with_one_program_runs_by_its_file_alone(folder, platform):
    messages = []
    place = _written(folder)
    result = app_check.once(workload_registry.get(f"app:{place}"), 512 << 20, messages.append, platform)
    samples = {sample.metric: sample.value for sample in result.measured.samples}
    assert samples["rate"] > 1
    assert samples["median"] <= samples["p99"]
    assert result.image.manifest.digests["config"] == container_images.read(folder / "tiny.oci").digest
    assert (result.image.root / "srv/tiny").is_file()


def test_on_the_hosts_network_nobody_but_the_client_reaches_it(folder):
    """Its port is open on the bridge's address alone."""
    place = _written(folder, 'built_in = "http-get"', f'command = ["tare-agent", {ASK}]\n{METRIC}')
    text = place.read_text().replace("time_s = 0.2", "seconds = 2")
    place.write_text(text)
    before, opened, over = listening(), set(), threading.Event()

    def look():
        while not over.wait(0.05):
            opened.update(listening() - before)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        app_check.once(workload_registry.get(f"app:{place}"), 512 << 20, lambda line: None, "native")
    finally:
        over.set()
        looking.join()
    [address] = {address for address, _ in opened}
    assert ipaddress.ip_address(address).is_private
    assert not ipaddress.ip_address(address).is_loopback


def test_check_prints_its_figures(folder, capfd):
    place = _written(folder)
    try_once(file.examine(place)[0], 512 << 20)
    printed = capfd.readouterr().out
    assert re.search(r"^rate: [0-9.e+]+ requests/s", printed, re.MULTILINE)
    assert f"{place} runs on native" in printed


def test_check_tries_each_platform_and_says_what_a_server_printed_that_is_not_ready(folder, capfd):
    start = '["/srv/tiny", "answer", "http", "{port}", "64", "{address}"]'
    place = _written(folder, start, '["/srv/tiny", "answer", "http", "40007", "64", "{address}"]')
    place.write_text(place.read_text().replace("[ready]", "[ready]\nwithin = 0.5"))
    assert not try_once(file.examine(place)[0], 512 << 20, ["native", "runc"])
    lines = capfd.readouterr().out.splitlines()
    for platform, line in zip(("native", "runc"), lines, strict=True):
        assert line.startswith(f"{platform}: {place}:4: /srv/tiny is not in service: ")
        assert "it printed " in line
        assert f"{place}:7: a longer within in [ready]" in line
    place = _written(folder)
    assert try_once(file.examine(place)[0], 512 << 20, ["native", "runc"])
    printed = capfd.readouterr().out
    assert re.search(r"^native: rate: .*^runc: rate: ", printed, re.MULTILINE | re.DOTALL)
    assert f"{place} runs on native, runc: tare run -w app:{place} -p runc" in printed


def test_a_campaign_records_the_images_digests_and_is_not_resumed_with_another_file(folder, monkeypatch, capfd):
    place, campaign = _written(folder), folder / "tiny.tare"
    words = ["run", "-w", f"app:{place}", "-p", "runc", "--blocks", "1", "--memory", "512", "-o", str(campaign)]
    monkeypatch.setattr(sys, "argv", ["tare", *words])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert "app:tiny" in capfd.readouterr().out
    with read_store(campaign) as store:
        record = store.record
        assert set(store.trials()["status"]) == {"ok"}
    container = container_images.read(folder / "tiny.oci")
    assert record.image["digests"] == container.digests
    assert record.image["tools_hash"] != record.image["hash"]
    assert record.workloads[0].params["file"] == hashlib.sha256(place.read_bytes()).hexdigest()
    place.write_text(f"{place.read_text()}# changed\n")
    with pytest.raises(UsageError, match="cannot have file"):
        provenance.jobs_of(record)


@pytest.mark.parametrize(
    ("before", "after", "place", "what"),
    [
        ("/srv/tiny", "/srv/none", 4, "No such file"),
        ('http = "/"', "tcp = true", 4, "tiny ended"),
        ('"{port}", "64"', '"29999", "64"', 4, "not ready within"),
        ('image = "tiny.oci"', 'image = "none.oci"', 2, "is no image"),
    ],
)
def test_what_does_not_start_is_said_with_its_line(folder, before, after, place, what):
    path = _written(folder, before, after)
    if before.startswith("http"):
        path.write_text(path.read_text().replace('"answer"', '"nothing"'))
    path.write_text(path.read_text().replace("[ready]", "[ready]\nwithin = 2"))
    described, _ = file.examine(path)
    with pytest.raises(TareError, match=what) as caught:
        try_once(described, 512 << 20)
    assert caught.value.what.startswith(f"{path}:{place}: ")
