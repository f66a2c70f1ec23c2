"""A small HTTP server for browsers and scrapers, which no client can starve tare by.

At most `CONNECTIONS` are open at a time, each with a thread; further ones are closed at once. A request must have come
within `PATIENCE_S`. A request must name the server as its host: a web page whose own name was pointed at this machine
(DNS rebinding) names another.
"""

from __future__ import annotations

import contextlib
import ipaddress
import socket
import socketserver
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tare.safe_text import encodable
from tare.timeouts import until

LOOPBACK = "127.0.0.1"
#: As many as a browser opens, and a scraper or two.
CONNECTIONS = 8
#: Time limit in seconds of a request, and of each part of an answer.
PATIENCE_S = 10
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",  # an address may have a token
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(slots=True)
class Response:
    """The answer to one HTTP request: its status, the type of its content, and the content."""

    status: HTTPStatus
    kind: str
    body: bytes


def plain(status: HTTPStatus, text: str) -> Response:
    """An answer of one line of text."""
    return Response(status, "text/plain; charset=utf-8", f"{encodable(text)}\n".encode())


class _Handler(BaseHTTPRequestHandler):
    server: HttpServer
    timeout = PATIENCE_S
    server_version = "tare"
    sys_version = ""

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def _answer(self) -> None:
        self.server.came(self.connection)
        if self.headers.get_all("Host") is None or not self.server.is_called(self.headers["Host"]):
            answer = plain(HTTPStatus.MISDIRECTED_REQUEST, "this is no address of tare's")
        else:
            answer = self.server.answer(self.path, self.headers.get("Accept", ""))
        self.send_response(answer.status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(answer.body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (its name in the library)
        """Nothing is logged: an address may have a token."""


class HttpServer(ThreadingHTTPServer):
    """Answers GET and HEAD on an address. Raises `OSError` where it cannot listen."""

    daemon_threads = True
    request_queue_size = 128  # a burst is taken, and not tried again by each client after a second

    def __init__(self, host: str, port: int, answer: Callable[[str, str], Response]) -> None:
        """``host``: an IP address; ``answer``: gives the answer to a request's target and its ``Accept`` header."""
        self.answer = answer
        self._bound = ipaddress.ip_address(host)
        self.address_family = socket.AF_INET6 if self._bound.version == 6 else socket.AF_INET
        self._lock = threading.Lock()
        self._open: dict[socket.socket, float] = {}  # with when the request must have come
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind without the library's search for the host's name, which may wait for a name server."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self._bound), self.socket.getsockname()[1]

    def is_called(self, host: str) -> bool:
        """Return True if a ``Host`` header is an address or a name of this server.

        Who serves more than the loopback is called by any of the host's addresses, which tare does not know; none of
        them is a name of somebody else's.
        """
        try:
            parts = urlsplit(f"//{host}")
            name, port = parts.hostname or "", parts.port or 80
        except ValueError:
            return False
        if port != self.server_port or parts.path or parts.username is not None:
            return False
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            own = set() if self._bound.is_loopback else {socket.gethostname().lower()}
            return name in {"localhost", *own}
        return address == self._bound or not self._bound.is_loopback

    def came(self, connection: socket.socket) -> None:
        """Note that the request of a connection is there: the answer may take longer."""
        with self._lock:
            self._open[connection] = float("inf")

    def verify_request(self, request: object, client_address: object) -> bool:  # noqa: ARG002 (the library's)
        """Refuse connections beyond `CONNECTIONS`."""
        assert isinstance(request, socket.socket)
        with self._lock:
            is_taken = len(self._open) < CONNECTIONS
            if is_taken:
                self._open[request] = until(PATIENCE_S)
        return is_taken

    def shutdown_request(self, request: object) -> None:
        """Close a connection, which gives its place to another."""
        assert isinstance(request, socket.socket)
        try:
            super().shutdown_request(request)
        finally:  # only now: until it is closed it takes a descriptor
            with self._lock:
                self._open.pop(request, None)

    def service_actions(self) -> None:
        """End connections whose request did not come in time; called twice a second."""
        now = time.monotonic()
        with self._lock:
            late = [connection for connection, deadline in self._open.items() if deadline < now]
        for connection in late:
            with contextlib.suppress(OSError):  # it is closed just now
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away, or did not finish its request, is nobody's matter."""
