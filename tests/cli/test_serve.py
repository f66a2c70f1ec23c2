"""The local index: what it lists, and whom it answers."""

import http.client
import json
import os
import socket
import threading
import time

import pytest

import fake_campaign
from store import hostile_files
from tare.cli import serve
from tare.cli.serve import PageSite, SiteServer
from tare.errors import UsageError
from tare.report.formats.index import campaign_files, entries
from tare.store import open_store

SHAPE = fake_campaign.Shape(blocks=2, rounds=2, workloads=("sysbench-cpu",))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("campaigns")
    fake_campaign.write(folder / "night.tare", SHAPE)
    (folder / "more").mkdir()
    fake_campaign.write(folder / "more" / "later.tare", SHAPE)
    (folder / "broken <b>.tare").write_text("no campaign")
    (folder / "link.tare").symlink_to(folder / "night.tare")
    (folder / "notes.txt").write_text("notes")
    (folder / "away").symlink_to("/etc")
    return folder


@pytest.fixture(scope="module")
def server(folder):
    with SiteServer(PageSite(folder), 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def ask(server):
    def _ask(name="", *, path=None, method="GET", host=None):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
        connection.putrequest(method, path or f"/{token(server)}/{name}", skip_host=True)
        if host != "":
            connection.putheader("Host", host or f"127.0.0.1:{server.server_port}")
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer.status, body, answer.headers

    return _ask


def token(server):
    return server.address.rstrip("/").rpartition("/")[2]


def key(folder, name):
    return next(key for key, path in campaign_files(folder).items() if path.name == name)


def test_campaigns_of_all_folders_are_listed_and_links_are_not(folder):
    listed = entries(folder)
    assert [entry.name for entry in listed] == ["more/later.tare", "night.tare", "broken <b>.tare"]
    assert listed[0].platforms == ("runc", "docker", "gvisor-systrap", "gvisor-ptrace")
    assert listed[2].created is None
    assert "is not a campaign" in listed[2].problem or "no campaign" in listed[2].problem


def test_the_index_leads_to_pages_and_data(ask, folder):
    status, index, headers = ask()
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "broken &lt;b&gt;.tare" in index
    assert f'href="{key(folder, "night.tare")}.html"' in index
    status, page, _ = ask(f"{key(folder, 'night.tare')}.html")
    assert status == 200
    assert "<title>tare: night.tare</title>" in page
    status, data, headers = ask(f"{key(folder, 'later.tare')}.json")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert json.loads(data)["file"] == "later.tare"


def test_a_page_is_made_once_and_again_when_its_file_has_changed(folder, tmp_path, monkeypatch):
    rendered = []
    monkeypatch.setattr(serve, "materials", lambda paths: rendered.append(paths) or [])
    monkeypatch.setattr(serve, "page_text", lambda _: "a page")
    fake_campaign.write(tmp_path / "x.tare", SHAPE)
    site = PageSite(tmp_path)
    name = f"/{site.token}/{key(tmp_path, 'x.tare')}.html"
    assert site.answer(name).body == site.answer(name).body == b"a page"
    assert len(rendered) == 1
    with open_store(tmp_path / "x.tare") as store:
        store.add_event("info", "changed")
    os.utime(tmp_path / "x.tare", (time.time() + 5, time.time() + 5))
    assert site.answer(name).status == 200
    assert len(rendered) == 2


def test_the_index_has_the_answers_of_pages_that_were_prepared(folder):
    site = PageSite(folder)
    assert "runc" not in site.answer(f"/{site.token}/").body.decode().replace("runc, docker", "")
    site.prepare(threading.Event())
    index = site.answer(f"/{site.token}/").body.decode()
    [sentence] = {answer for _, answer in site._answers.values() if answer}
    assert sentence.split(".")[0] in index
    ended = threading.Event()
    ended.set()
    idle = PageSite(folder)
    idle.prepare(ended)
    assert not idle._made


def test_only_so_many_pages_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(serve, "materials", lambda _: [])
    monkeypatch.setattr(serve, "page_text", lambda _: "a page")
    for number in range(serve.KEPT + 3):
        (tmp_path / f"{number}.tare").write_text("")
    site = PageSite(tmp_path)
    for page_key in campaign_files(tmp_path):
        assert site.answer(f"/{site.token}/{page_key}.html").status == 200
    assert len(site._made) == serve.KEPT


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{}", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.evil.example:{}", ""]
)
def test_another_hosts_name_gets_nothing(ask, server, host):
    status, body, _ = ask(host=host.format(server.server_port) if host else "")
    assert status == 421
    assert "night" not in body


def test_this_machines_names_are_answered(ask, server):
    assert ask(host=f"LOCALHOST:{server.server_port}")[0] == 200


def test_without_the_token_nothing_is_found(ask, server, folder):
    page, right = f"{key(folder, 'night.tare')}.html", token(server)
    for path in (
        "/",
        "/index.html",
        f"/{page}",
        f"/{right[:-1]}/",
        f"/{right}x/",
        f"{right}/",
        "/%c3%a9/",
        f"/x/{right}/",
    ):
        assert ask(path=path)[:2] == (404, "not found\n")


def test_a_token_of_other_letters_is_compared(folder):
    assert PageSite(folder).answer("/\xe9\xe9/").status == 404


PATHS = (
    *("../night.tare", "..%2fnight.tare", "night.tare", "more/later.tare", "link.tare", "notes.txt", "away/passwd"),
    *("/etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "?x", "0" * 20 + ".html"),
    *("{}", "{}.tare", "{}.html/../..", "{}.html?x=1", "{}.html%00"),
)


@pytest.mark.parametrize("name", PATHS)
def test_no_part_of_a_request_becomes_a_path(ask, folder, name):
    assert ask(name.format(key(folder, "night.tare")))[:2] == (404, "not found\n")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_it_only_reads(ask, method):
    assert ask(method=method)[0] == 501


def test_a_head_has_no_body(ask):
    status, body, headers = ask(method="HEAD")
    assert (status, body) == (200, "")
    assert int(headers["Content-Length"]) > 1000


def test_what_a_browser_is_told(ask):
    _, _, headers = ask()
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cache-Control"] == "no-store"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers
    assert "Python" not in headers["Server"]


def test_a_file_that_cannot_be_read_is_said(ask, folder):
    status, body, _ = ask(f"{key(folder, 'broken <b>.tare')}.html")
    assert status == 500
    assert "Traceback" not in body
    assert len(body.splitlines()) == 1


def test_it_listens_on_the_loopback_with_a_token_of_its_own(server, folder):
    assert server.server_address[0] == "127.0.0.1"
    assert len(token(server)) == 32
    assert PageSite(folder).token != PageSite(folder).token


def test_who_does_not_finish_a_request_holds_nobody_up(ask, server):
    with socket.create_connection(("127.0.0.1", server.server_port)) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        assert ask()[0] == 200


def test_a_port_that_is_taken_is_said(server, folder):
    with pytest.raises(UsageError, match="cannot be listened on: Address already in use"):
        SiteServer(PageSite(folder), server.server_port)


@pytest.mark.thorough
@pytest.mark.parametrize("name", hostile_files.MAKERS)
def test_hostile_files_are_listed_or_said_to_be_unreadable(name, tmp_path):
    hostile_files.MAKERS[name](tmp_path / "x.tare")
    site = PageSite(tmp_path)
    answer = site.answer(f"/{site.token}/")
    assert answer.status == 200
    assert b"<script>alert" not in answer.body
    files = len(campaign_files(tmp_path))  # none of what is no file
    assert answer.body.count(b"<tr>") == (1 + files if files else 0)
