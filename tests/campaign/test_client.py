"""What a program at the client is started with."""

import os
from pathlib import Path

import pytest

from tare.campaign.instances import client


@pytest.mark.skipif(os.geteuid() != 0, reason="the client is a chroot")
def test_a_load_goes_through_no_proxy_of_the_users(monkeypatch):
    for name in ("http_proxy", "HTTPS_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("LANG", "C")
    shown = client.Client(Path("/"), (), namespace=None).run(["env"], cwd="/", time_limit_s=30).text
    names = dict(line.partition("=")[::2] for line in shown.splitlines())
    assert names["LANG"] == "C"
    assert not [name for name in names if name.lower().endswith("_proxy")]
