"""One address in front of several servers, as a Kubernetes Service or an endpoint of a cloud is.

A new connection goes to the server of the moment; an older one stays where it is.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import servers


class OneAddress:
    """Copies bytes between clients and the server on port `target`, which may change. What it answers comes late."""

    def __init__(self, target: int, delay_s: float = 0.0, port: int = 0) -> None:
        self.target, self.connections, self._delay_s = target, 0, delay_s
        self._listener = socket.create_server((servers.HOST, port))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self) -> str:
        """Host and port."""
        return f"{servers.HOST}:{self._listener.getsockname()[1]}"

    @property
    def url(self) -> str:
        """The url of that address, for Redis."""
        return f"redis://{self.address}/0"

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection((servers.HOST, self.target), 2)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            self.connections += 1
            for ends in ((client, server, 0.0), (server, client, self._delay_s)):
                threading.Thread(target=_copy, args=ends, daemon=True).start()


def _copy(source: socket.socket, sink: socket.socket, delay_s: float) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            time.sleep(delay_s)
            sink.sendall(data)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def one_address(target: int, delay_s: float = 0.0) -> Iterator[OneAddress]:
    """The address, closed afterwards."""
    with closing(OneAddress(target, delay_s)) as address:
        yield address


@contextmanager
def opened_later(target: int, after_s: float) -> Iterator[str]:
    """An address, host and port, at which nobody listens until then."""
    with closing(socket.create_server((servers.HOST, 0))) as free:
        port = free.getsockname()[1]
    opened = list[OneAddress]()
    timer = threading.Timer(after_s, lambda: opened.append(OneAddress(target, port=port)))
    timer.start()
    try:
        yield f"{servers.HOST}:{port}"
    finally:
        timer.cancel()
        timer.join()
        for each in opened:
            each.close()
