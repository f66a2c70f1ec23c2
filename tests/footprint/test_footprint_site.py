"""What a footprint's or a surface's host session leaves on the host is in the file, as a campaign's is."""

from types import SimpleNamespace

import pytest

from campaign.fakes import FakeLauncher, FakePlatform, a_plan, a_record
from tare.campaign.execution import provenance, run_campaign
from tare.campaign.host_session import HostSession
from tare.errors import StoreError
from tare.features.kernel.execution import count_setup
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
    monkeypatch.setattr(run_campaign, "platforms_for", lambda names: [FakePlatform("native", baseline=True)])
    monkeypatch.setattr(run_campaign, "check_disk", lambda: None)
    monkeypatch.setattr(run_campaign, "record_of", lambda plan, *_: a_record(a_plan()))
    monkeypatch.setattr(count_setup, "_image", lambda *_: SimpleNamespace())


@pytest.mark.parametrize("there", [False, True], ids=["new", "existing"])
@pytest.mark.usefixtures("host")
def test_what_stays_at_the_end_of_the_session_is_in_the_file(tmp_path, there):
    file = tmp_path / "x.tare"
    if there:
        create_store(file, a_record(a_plan()), provenance.mark).close()
    with count_setup.opened(count_setup.SiteRequest("surface", file, 7), lambda _: None, lambda _: None):
        pass
    with read_store(file) as store:
        assert "left on this host: folder /x (it is busy)" in [event.text for event in store.events()]


@pytest.mark.usefixtures("host")
def test_a_file_of_another_host_is_added_to_only_with_consent_to_its_record(tmp_path):
    file = tmp_path / "theirs.tare"
    create_store(file, a_record(a_plan()), lambda _text: "another host's").close()
    for agreed in ("", "another digest"):
        request = count_setup.SiteRequest("surface", file, 7, agreed=agreed)
        with (
            pytest.raises(StoreError, match="was not written by this host"),
            count_setup.opened(request, lambda _: None, lambda _: None),
        ):
            pass
    with read_store(file) as store:
        assert store.events() == []
        agreed = provenance.digest(store)
    with count_setup.opened(count_setup.SiteRequest("surface", file, 7, agreed=agreed), lambda _: None, lambda _: None):
        pass
