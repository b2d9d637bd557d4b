"""Callers, answers, and how a script is run: the part that all verbs share.

Redis TIME decides leases. A simulation passes its own time as `now`.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Generic, Self, TypeVar

from coordinator.assignment.assignment_text import Ranges, told
from coordinator.progress.ownership import Owned
from coordinator.ranges import HashRange
from coordinator.redis.client import RedisClient
from coordinator.redis.keys import GroupKeys
from coordinator.settings import GroupSettings

T = TypeVar("T")
MOST_EVENTS = 1_000
"""The number of events that a group keeps, roughly."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller: the member, its incarnation, and the state that it saw last."""

    member: str = ""
    incarnation: str = ""
    nonce: str = ""
    seq: str = ""
    number: str = ""  # of this call, in the order of its member's calls; empty where the order does not matter


NOBODY = Caller()
"""Who calls, where no member does."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Identity and age of the state that answered. A smaller `seq` later means a loss of state."""

    nonce: str
    seq: int


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """The value of a verb, and the state that it came from."""

    seen: Seen
    value: T


class ScriptCalls:
    """Runs verbs for one group. Safe for two threads (the reader's and its heartbeat)."""

    def __init__(
        self,
        client: RedisClient,
        group: str,
        *,
        session_ms: int,
        longest_ms: int,
        retention_ms: int,
        now: Callable[[], int] | None = None,
    ) -> None:
        self._client = client
        self._keys = GroupKeys(group)
        self._session_ms, self._longest_ms = session_ms, longest_ms
        self._retention_ms = retention_ms
        self._now = now

    @classmethod
    def of(cls, client: RedisClient, settings: GroupSettings, now: Callable[[], int] | None = None) -> Self:
        """The verbs for the group of these settings."""
        return cls(
            client,
            settings.group,
            session_ms=settings.session_ms,
            longest_ms=settings.longest_ms,
            retention_ms=settings.retention_ms,
            now=now,
        )

    @property
    def group(self) -> str:
        """The group's name."""
        return self._keys.group

    def now_ms(self) -> int:
        """Redis TIME in ms."""
        if self._now:
            return self._now()
        with self._client.reading() as redis:
            seconds, microseconds = redis.time()
        return seconds * 1_000 + microseconds // 1_000

    def _run(self, verb: str, caller: Caller, keys: Sequence[str], *args: str) -> list[Any]:
        now = str(self._now()) if self._now else ""
        times = {"session": self._session_ms, "longest": self._longest_ms, "retention": self._retention_ms}
        call = asdict(caller) | {"now": now} | {name: str(ms) for name, ms in times.items()}
        return self._client.run(verb, keys, [json.dumps(call), *args])

    def event(self, kind: str, why: str, member: str = "", ranges: Ranges | None = None) -> None:
        """Add an event to the events stream."""
        fields = {"event": kind, "member": member, "why": why}
        self._tell(self._keys.events, MOST_EVENTS, fields | ({"ranges": told(ranges)} if ranges else {}))

    def _fence(self, what: str, caller: Caller, refused: Ranges) -> None:
        """Write a fence event for ranges that the caller no longer owns, if there are any."""
        if refused:
            self.event(
                "fence", f"{what} for ranges that the member does not own at that lane epoch", caller.member, refused
            )

    def _tell(self, stream: str, most: int, fields: Mapping[str, str]) -> None:
        """Add an entry to a stream of the group that keeps about `most` entries."""
        flat = (text for field in fields.items() for text in field)
        self._run("tell", NOBODY, [self._keys.meta, stream], str(most), *flat)


def pairs(flat: Sequence[str]) -> dict[str, str]:
    """The hash of a reply: field, value, field, value ..."""
    return dict(zip(flat[::2], flat[1::2], strict=True))


def owned_text(owned: Iterable[Owned]) -> str:
    """Ranges at their lane epochs, as scripts read them: `lo-hi epoch;` for each."""
    return "".join(f"{o.hashes} {o.epoch};" for o in owned)


def owned_of(text: str) -> tuple[Owned, ...]:
    """The ranges of such a text."""
    return tuple(Owned(HashRange.parse(h), epoch) for h, epoch in (x.split() for x in text.split(";") if x))


def answer(reply: list[Any], value: T) -> Answer[T]:
    """The value of a reply, with the state that it came from."""
    return Answer(Seen(reply[0], int(reply[1])), value)
