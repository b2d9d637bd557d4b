"""Idle clients of Kafka in one Python worker, kept open from task to task.

A connection costs more than a small batch, and Spark's workers outlive their tasks. Knows when a client is too old to
be used again; nothing of its kind.
"""

import atexit
import pickle
from collections import OrderedDict
from collections.abc import Mapping
from time import monotonic
from typing import Generic, Protocol, TypeVar

IDLE_S = 60.0
"""A client that was idle for longer is not used again.

The broker closes idle connections after some minutes, and so may network devices on the way. After that, kafka-python
waited 20 seconds and more. A new connection costs a fraction of a second.
"""


class _Closable(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=_Closable)


class IdleClients(Generic[C]):
    """Clients that no task uses, by their settings. One thread at a time may use it."""

    def __init__(self, most: int) -> None:
        """At most `most` clients are kept."""
        self._most = most
        self._idle: OrderedDict[bytes, tuple[C, float]] = OrderedDict()  # with the time of its return
        atexit.register(self.close)

    def take(self, key: bytes) -> C | None:
        """The idle client of these settings, if it was not idle for too long. The caller alone uses it."""
        client, since = self._idle.pop(key, (None, 0.0))
        if client is not None and monotonic() - since > IDLE_S:
            client.close()
            return None
        return client

    def keep(self, key: bytes, client: C) -> None:
        """Keep a client for the next task. The one that has been idle for longest is closed if there are too many."""
        displaced = self._idle.pop(key, None)
        self._idle[key] = client, monotonic()
        if displaced is None and len(self._idle) > self._most:
            _, displaced = self._idle.popitem(last=False)
        if displaced is not None:
            displaced[0].close()

    @property
    def clients(self) -> tuple[C, ...]:
        """The idle clients; they stay idle."""
        return tuple(client for client, _ in self._idle.values())

    def close(self) -> None:
        """Close every idle client."""
        while self._idle:
            self._idle.popitem()[1][0].close()


def key_of(kafka: Mapping[str, object], *more: object) -> bytes:
    """A key for equal settings; `repr` would not do, which hides passwords."""
    return pickle.dumps((sorted(kafka.items()), more))
