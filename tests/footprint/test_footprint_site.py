"""What a footprint's or a surface's host session leaves on the host is in the file, as a campaign's is."""

from types import SimpleNamespace

import pytest

from campaign.fakes import FakeLauncher, FakePlatform, a_plan, a_record
from tare.campaign.execution import conduct, trust
from tare.campaign.host_session import HostSession
from tare.errors import StoreError
from tare.features.kernel.execution import site
from tare.host.resources import unremoved
from tare.store import create_store, read_store


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host on which one thing cannot be removed when the session ends; its entry in the journal stays."""
    entry = tmp_path / "entry.json"

    def prepare(session, image, resources, subnet=None, prefix=None, client=None):
        entry.touch()
        session.callback(unremoved.note, unremoved.Unremoved(entry, "folder /x", "it is busy"))
        return FakeLauncher(), None

    monkeypatch.setattr(unremoved, "_noted", {})
    monkeypatch.setattr(HostSession, "__enter__", lambda self: self)
    monkeypatch.setattr(HostSession, "prepare", prepare)
    monkeypatch.setattr("tare.campaign.execution.preflight._fairness", lambda *_: {})
    monkeypatch.setattr(conduct, "platforms_for", lambda names: [FakePlatform("native", baseline=True)])
    monkeypatch.setattr(conduct, "check_disk", lambda: None)
    monkeypatch.setattr(conduct, "record_of", lambda plan, *_: a_record(a_plan()))
    monkeypatch.setattr(site, "_image", lambda *_: SimpleNamespace())


@pytest.mark.parametrize("there", [False, True], ids=["new", "existing"])
@pytest.mark.usefixtures("host")
def test_what_stays_at_the_end_of_the_session_is_in_the_file(tmp_path, there):
    file = tmp_path / "x.tare"
    if there:
        create_store(file, a_record(a_plan()), trust.mark).close()
    with site.opened(site.SiteRequest("surface", file, 7), lambda _: None, lambda _: None):
        pass
    with read_store(file) as store:
        assert "left on this host: folder /x (it is busy)" in [event.text for event in store.events()]


@pytest.mark.usefixtures("host")
def test_a_file_of_another_host_is_added_to_only_with_consent_to_its_record(tmp_path):
    file = tmp_path / "theirs.tare"
    create_store(file, a_record(a_plan()), lambda _text: "another host's").close()
    for agreed in ("", "another digest"):
        request = site.SiteRequest("surface", file, 7, agreed=agreed)
        with (
            pytest.raises(StoreError, match="was not written by this host"),
            site.opened(request, lambda _: None, lambda _: None),
        ):
            pass
    with read_store(file) as store:
        assert store.events() == []
        agreed = trust.digest(store)
    with site.opened(site.SiteRequest("surface", file, 7, agreed=agreed), lambda _: None, lambda _: None):
        pass
