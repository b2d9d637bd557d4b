"""An endpoint on localhost that gives unsigned tokens (RFC 7515, A.5), for a broker that checks no signature."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

CLIENT, SECRET = "orders job", "hunter2"


class TokenEndpoint(ThreadingHTTPServer):
    """Its tokens live for `life_s` seconds. A test may set another `status`, and then reads no token."""

    def __init__(self, life_s: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.life_s, self.status = life_s, 200
        self.body: bytes | None = None
        self.forms: list[dict[str, list[str]]] = []

    @property
    def url(self) -> str:
        """Its url."""
        return f"http://127.0.0.1:{self.server_port}/token"

    def answer(self) -> bytes:
        """A new token, or what the test wants."""
        return json.dumps({"access_token": token(self.life_s), "expires_in": self.life_s}).encode()


def token(life_s: float) -> str:
    """An unsigned token."""
    now = time.time()
    claims = {"sub": CLIENT, "iat": now, "exp": now + life_s}
    return f"{_text({'alg': 'none'})}.{_text(claims)}."


def _text(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


class _Handler(BaseHTTPRequestHandler):
    server: TokenEndpoint

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        login = base64.b64decode(self.headers["Authorization"].removeprefix("Basic ")).decode()
        known = login == f"{CLIENT.replace(' ', '+')}:{SECRET}"
        self.server.forms.append(form)
        body = self.server.answer() if self.server.body is None else self.server.body
        self.send_response(self.server.status if known else 401)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the standard library
        """Nothing."""


@contextmanager
def token_endpoint(life_s: float = 3600) -> Iterator[TokenEndpoint]:
    """A running endpoint."""
    with TokenEndpoint(life_s) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="token endpoint")
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
