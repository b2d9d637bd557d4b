"""A service on localhost that answers each request with JSON, as one that a job asks."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[str, bytes], tuple[int, object]]
"""From path and body to status and answer."""


class Service(ThreadingHTTPServer):
    """Its address, and the paths that were asked for."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer, self.asked = answer, list[str]()

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Service

    def do_GET(self) -> None:
        self.server.asked.append(self.path.partition("?")[0])
        status, body = self.server.answer(
            self.server.asked[-1], self.rfile.read(int(self.headers["Content-Length"] or 0))
        )
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the standard library
        """Nothing."""


@contextmanager
def service(answer: Answer) -> Iterator[Service]:
    """A running service."""
    with Service(answer) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield server
        finally:
            server.shutdown()
