"""Lets kafka-python take what has come from a broker in large pieces; by itself it takes 4 KiB at a time.

Half of the CPU time of fetching went to those calls, and to joining what they gave. `_build_transport` and `_sock`
are private names of kafka-python: where they are not as they were, nothing is changed and fetching is slower.
"""

import logging
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import kafka
from kafka import KafkaConsumer

log = logging.getLogger(__name__)

READ_BYTES = 1024 * 1024
"""Of one read. Larger answers come in several, so that memory of this size is used again and again."""

TLS_BYTES = 16 * 1024
"""The most that one read of an encrypted connection gives."""


class LargeReads:
    """A socket whose `recv` gives more than it is asked for; all else is the socket's."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self._encrypted = isinstance(sock, ssl.SSLSocket)
        self._most = TLS_BYTES if self._encrypted else READ_BYTES
        self._has_given = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def recv(self, size: int) -> bytes:
        """What has come; each second call says that nothing is left.

        kafka-python calls until then, and joins. What is left is told again by the selector, but what OpenSSL
        has decrypted is not: there every call gives what there is.
        """
        if self._has_given and not self._encrypted:
            self._has_given = False
            raise BlockingIOError
        data: bytes = self._sock.recv(max(size, self._most))
        self._has_given = bool(data)
        return data


def install(consumer: KafkaConsumer) -> bool:
    """Have the connections that `consumer` opens from now on read in large pieces; False if it cannot be."""
    manager = getattr(consumer, "_manager", None)
    build: Callable[..., Awaitable[Any]] | None = getattr(manager, "_build_transport", None)
    if build is None:
        log.warning("kafka-python %s reads in pieces of its own size: fetching is slower", kafka.__version__)
        return False

    async def built(*node: Any, **how: Any) -> Any:
        transport = await build(*node, **how)
        if hasattr(transport, "_sock"):
            transport._sock = LargeReads(transport._sock)  # noqa: SLF001
        return transport

    manager._build_transport = built  # type: ignore[union-attr]  # noqa: SLF001
    return True
