"""One address in front of several servers, as a Kubernetes Service or an endpoint of a cloud is.

A new connection goes to the server of the moment; an older one stays where it is.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

import servers


class OneAddress:
    """Copies bytes between clients and the server on port `target`, which may change."""

    def __init__(self, target: int) -> None:
        self.target, self.connections = target, 0
        self._listener = socket.create_server((servers.HOST, 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The url of that address."""
        return f"redis://{servers.HOST}:{self._listener.getsockname()[1]}/0"

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
            for ends in ((client, server), (server, client)):
                threading.Thread(target=_copy, args=ends, daemon=True).start()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    for end in (source, sink):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def one_address(target: int) -> Iterator[OneAddress]:
    """The address, closed afterwards."""
    with closing(OneAddress(target)) as address:
        yield address
