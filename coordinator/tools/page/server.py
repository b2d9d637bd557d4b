"""Serves the page with uvicorn, in a thread of its own."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import uvicorn
from starlette.applications import Starlette

_WAITING = 64  # connections that the kernel holds while the server starts


@contextmanager
def serving(host: str, port: int, page: Starlette) -> Iterator[int]:
    """Serve until the end of the block. Yields the port, which is another one for port 0.

    Raises `OSError` if the address cannot be used.
    """
    with _listener(host, port) as listener:
        config = uvicorn.Config(page, log_config=None, access_log=False, server_header=False, lifespan="off")
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, args=([listener],), name="coop-kafka-page")
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            thread.join()


def _listener(host: str, port: int) -> socket.socket:
    family, kind, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(where)
        listener.listen(_WAITING)
    except OSError:
        listener.close()
        raise
    return listener
