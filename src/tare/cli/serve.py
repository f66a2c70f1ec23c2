"""`tare serve`: answers this machine's browser with an index of campaigns, and with their pages.

Files are anyone's and are only read; a path is never made of what a request says, but looked up by a key. Who may ask:
the socket is on the loopback, the address has a token, and a page of another name that a browser was led to
(DNS rebinding) has the wrong Host header (`tare.cli.answering`).
"""

from __future__ import annotations

import hmac
import re
import secrets
import threading
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path

from tare.cli import answering
from tare.cli.answering import LOOPBACK, Response, plain
from tare.cli.console import Console
from tare.errors import Failed, TareError, UsageError, attempt
from tare.report.campaign.report_builder import build
from tare.report.formats.html import Material, materials, page_text
from tare.report.formats.index import campaign_files, entries, index_page
from tare.report.model import to_json
from tare.report.sentences import glance_words

#: Between two pages that are made ahead: a request that waits is answered then.
_PAUSE_S = 0.05
#: Pages that are kept; another one takes the oldest one's place.
KEPT = 8
_PAGE = re.compile(r"([0-9a-f]{20})\.(html|json)")


@dataclass(slots=True)
class PageSite:
    """The pages of a folder's campaigns, each made when it is first asked for and again when its file has changed."""

    folder: Path
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _made: dict[tuple[str, str], tuple[tuple[int, int] | None, bytes]] = field(default_factory=dict)
    #: In sentences, of the pages that were made.
    _answers: dict[Path, tuple[tuple[int, int] | None, str]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, target: str) -> Response:
        """The answer to a GET of ``target``. What is not known, and any other token, is not found alike."""
        token, _, name = target.removeprefix("/").partition("/")
        if not (target.startswith("/") and hmac.compare_digest(token.encode(), self.token.encode())):
            return plain(HTTPStatus.NOT_FOUND, "not found")
        try:
            answer = attempt(lambda: self._named(name))
        except TareError as error:
            return plain(HTTPStatus.INTERNAL_SERVER_ERROR, error.what)
        return plain(HTTPStatus.INTERNAL_SERVER_ERROR, answer.reason) if isinstance(answer, Failed) else answer

    def _named(self, name: str) -> Response:
        if name == "":
            known = {path: answer for path, (state, answer) in list(self._answers.items()) if state == _state(path)}
            return Response(HTTPStatus.OK, "text/html; charset=utf-8", index_page(self.folder, known).encode())
        match = _PAGE.fullmatch(name)
        path = campaign_files(self.folder).get(match[1]) if match else None
        if match is None or path is None:
            return plain(HTTPStatus.NOT_FOUND, "not found")
        with self._lock:  # one at a time: a page takes seconds of a core
            page = self._page(path, match[2])
        return Response(HTTPStatus.OK, "text/html; charset=utf-8" if match[2] == "html" else "application/json", page)

    def prepare(self, ended: threading.Event) -> None:
        """Make the newest campaigns' pages before they are asked for, so that the index has their answers."""
        for entry in entries(self.folder)[:KEPT]:
            if ended.wait(_PAUSE_S):
                return
            self.answer(f"/{self.token}/{entry.key}.html")

    def _page(self, path: Path, form: str) -> bytes:
        state = _state(path)
        key = str(path), form
        kept = self._made.pop(key, None)
        if kept is None or kept[0] != state:
            text = self._html(path, state) if form == "html" else to_json([build(path)])
            kept = state, text.encode()
        self._made[key] = kept
        for oldest in list(self._made)[:-KEPT]:
            del self._made[oldest]
        return kept[1]

    def _html(self, path: Path, state: tuple[int, int] | None) -> str:
        read = materials([path])
        self._answers[path] = state, " ".join(sentence for material in read for sentence in _sentences(material))
        return page_text(read)


def _state(path: Path) -> tuple[int, int] | None:
    """The time of a file's last change in ns, and its size in bytes; None where it is gone."""
    try:
        now = path.stat()
    except OSError:
        return None
    return now.st_mtime_ns, now.st_size


def _sentences(material: Material) -> list[str]:
    return glance_words.sentences(material.report.answers, glance_words.own_words(material.report))


class SiteServer(answering.HttpServer):
    """The server of a site on the loopback. Raises `UsageError` where it cannot listen."""

    def __init__(self, site: PageSite, port: int) -> None:
        self.site = site
        try:
            super().__init__(LOOPBACK, port, lambda target, _accepted: site.answer(target))
        except OSError as error:
            raise UsageError(
                f"port {port} of {LOOPBACK} cannot be listened on: {error.strerror}", fix="another --port, or none"
            ) from error
        self.address = f"http://{LOOPBACK}:{self.server_port}/{site.token}/"


def serve_folder(folder: Path, port: int) -> None:
    """Serve until Ctrl-C. Raises `UsageError` where it cannot listen."""
    console = Console()
    site, ended = PageSite(folder), threading.Event()
    with SiteServer(site, port) as server:
        console.print(server.address, markup=False, soft_wrap=True)
        console.print("Ctrl-C ends it.", markup=False)
        threading.Thread(target=site.prepare, args=(ended,), daemon=True).start()
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            console.print("")
        finally:
            ended.set()
