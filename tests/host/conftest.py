import pytest

from tare.host import lock


@pytest.fixture(autouse=True)
def _a_lock_of_its_own(request, tmp_path, monkeypatch):
    """A campaign that runs on this host meanwhile has nothing to do with tests that need no host."""
    if not request.node.get_closest_marker("host"):
        monkeypatch.setattr(lock, "FOLDER", tmp_path / "run")
