"""What `tare serve` does: answers this machine's browser with an index of campaigns, and with their pages.

Files are anyone's and are only read; a path is never made of what a request says, but looked up by a key. Who may ask:
the socket is on the loopback, the address has a token, and a page of another name that a browser was led to
(DNS rebinding) has the wrong Host header.
"""

from __future__ import annotations

import hmac
import re
import secrets
import threading
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tare.clean import encodable
from tare.cli.console import Console
from tare.errors import Failed, TareError, UsageError, attempt
from tare.report.campaign.build import build
from tare.report.formats.html import materials, page_text
from tare.report.formats.index import campaign_files, index_page
from tare.report.model import to_json

LOOPBACK = "127.0.0.1"
#: Pages that are kept; another one takes the oldest one's place.
KEPT = 8
#: A request must have come after so many seconds.
PATIENCE_S = 10
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # the address has the token
    "Cross-Origin-Resource-Policy": "same-origin",
}
_PAGE = re.compile(r"([0-9a-f]{20})\.(html|json)")


@dataclass(slots=True)
class Response:
    """The answer to one HTTP request: its status, the type of its content, and the content."""

    status: HTTPStatus
    kind: str
    body: bytes


def _plain(status: HTTPStatus, text: str) -> Response:
    return Response(status, "text/plain; charset=utf-8", f"{encodable(text)}\n".encode())


@dataclass(slots=True)
class Site:
    """The pages of a folder's campaigns, each made when it is first asked for and again when its file has changed."""

    folder: Path
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    _made: dict[tuple[str, str], tuple[tuple[int, int], bytes]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, target: str) -> Response:
        """The answer to a GET of ``target``. What is not known, and any other token, is not found alike."""
        token, _, name = target.removeprefix("/").partition("/")
        if not (target.startswith("/") and hmac.compare_digest(token.encode(), self.token.encode())):
            return _plain(HTTPStatus.NOT_FOUND, "not found")
        try:
            answer = attempt(lambda: self._named(name))
        except TareError as error:
            return _plain(HTTPStatus.INTERNAL_SERVER_ERROR, error.what)
        return _plain(HTTPStatus.INTERNAL_SERVER_ERROR, answer.reason) if isinstance(answer, Failed) else answer

    def _named(self, name: str) -> Response:
        if name == "":
            return Response(HTTPStatus.OK, "text/html; charset=utf-8", index_page(self.folder).encode())
        match = _PAGE.fullmatch(name)
        path = campaign_files(self.folder).get(match[1]) if match else None
        if match is None or path is None:
            return _plain(HTTPStatus.NOT_FOUND, "not found")
        with self._lock:  # one at a time: a page takes seconds of a core
            page = self._page(path, match[2])
        return Response(HTTPStatus.OK, "text/html; charset=utf-8" if match[2] == "html" else "application/json", page)

    def _page(self, path: Path, form: str) -> bytes:
        now = path.stat()
        state = now.st_mtime_ns, now.st_size
        key = str(path), form
        kept = self._made.pop(key, None)
        if kept is None or kept[0] != state:
            text = page_text(materials([path])) if form == "html" else to_json([build(path)])
            kept = state, text.encode()
        self._made[key] = kept
        for oldest in list(self._made)[:-KEPT]:
            del self._made[oldest]
        return kept[1]


class _Handler(BaseHTTPRequestHandler):
    server: Server
    timeout = PATIENCE_S
    server_version = "tare"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        if self.headers.get_all("Host") is None or self.headers["Host"].lower() not in self.server.hosts:
            answer = _plain(HTTPStatus.MISDIRECTED_REQUEST, "this is no address of tare's")
        else:
            answer = self.server.site.answer(self.path)
        self.send_response(answer.status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in the library)
        """Nothing is logged: the address has the token."""


class Server(ThreadingHTTPServer):
    """The server of a site on the loopback. Raises `UsageError` where it cannot listen."""

    daemon_threads = True

    def __init__(self, site: Site, port: int) -> None:
        self.site = site
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            raise UsageError(
                f"port {port} of {LOOPBACK} cannot be listened on: {error.strerror}", fix="another --port, or none"
            ) from error
        self.hosts = frozenset(f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost"))
        self.address = f"http://{LOOPBACK}:{self.server_port}/{site.token}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away, or did not finish its request, is nobody's matter."""


def serve_folder(folder: Path, port: int) -> None:
    """Serve until Ctrl-C. Raises `UsageError` where it cannot listen."""
    console = Console()
    with Server(Site(folder), port) as server:
        console.print(server.address, markup=False, soft_wrap=True)
        console.print("Ctrl-C ends it.", markup=False)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            console.print("")
