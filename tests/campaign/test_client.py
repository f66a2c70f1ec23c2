"""What a program at the client is started with."""

from pathlib import Path

from tare.campaign.instances import client


def test_a_load_goes_through_no_proxy_of_the_users(monkeypatch):
    started = {}
    monkeypatch.setattr(client.processes, "start", lambda argv, **how: started.update(how))
    for name in ("http_proxy", "HTTPS_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("LANG", "C")
    client.Client(Path("/nowhere"), ()).start(["curl", "http://10.77.0.10/"])
    assert started["env"]["LANG"] == "C"
    assert not [name for name in started["env"] if name.lower().endswith("_proxy")]
