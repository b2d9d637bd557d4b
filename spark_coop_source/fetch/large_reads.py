"""Lets kafka-python read from a broker in large pieces instead of 4 KiB.

With 4 KiB, half of the CPU time of fetching goes to these calls, and to the join of their results. If another version
of kafka-python lacks the private names, `install` changes nothing, and fetching is slower.
"""

import logging
import ssl
from typing import Any

import kafka
from kafka import KafkaConsumer

from coordinator.kafka import internals

log = logging.getLogger(__name__)

READ_BYTES = 1024 * 1024
"""Bytes of one read. Larger answers come in several reads, which use the same memory again."""

TLS_BYTES = 16 * 1024
"""Most bytes of one read of an encrypted connection."""


class LargeReads:
    """A socket whose `recv` returns more than requested; all else is the socket's."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self._encrypted = isinstance(sock, ssl.SSLSocket)
        self._most = TLS_BYTES if self._encrypted else READ_BYTES
        self._has_given = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)

    def recv(self, size: int) -> bytes:
        """The received bytes; each second call reports that no bytes are left.

        kafka-python calls until then, and joins the results. The selector reports a socket with more bytes again. But
        it does not see bytes that OpenSSL has decrypted, so on encrypted connections every call returns them all.
        """
        if self._has_given and not self._encrypted:
            self._has_given = False
            raise BlockingIOError
        data: bytes = self._sock.recv(max(size, self._most))
        self._has_given = bool(data)
        return data


def install(consumer: KafkaConsumer) -> bool:
    """Let connections that `consumer` opens from now on read large pieces; False if kafka-python does not allow it."""
    if not internals.replace_sockets(consumer, LargeReads):
        log.warning("kafka-python %s reads in pieces of its own size: fetching is slower", kafka.__version__)
        return False
    return True
