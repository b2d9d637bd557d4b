"""Runs scripts and reads hashes of one group: all classes of verbs share it.

Redis TIME decides leases. A simulation passes its own time as `now`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any, Self, TypeVar

from coordinator.assignment.assignment_text import Ranges, event_text
from coordinator.assignment.settings import LONGEST_DELAY_MS, GroupSettings
from coordinator.redis.client import RedisClient
from coordinator.redis.keys import GROUPS, GroupKeys
from coordinator.redis.replies import NO_MEMBER, Answer, Caller, SeenState
from coordinator.redis.script_texts import flat
from coordinator.redis.verb import Reply, Verb, nothing, verb
from coordinator.values.subscription import TopicPartition

T = TypeVar("T")
MOST_EVENTS = 1_000
"""The number of events that a group keeps, roughly."""
_EVENT = verb("append", "meta entries=events", "most fields", nothing)


class ScriptCalls:
    """Calls of Redis for one group. Safe for two threads (the reader's and its heartbeat)."""

    def __init__(
        self,
        client: RedisClient,
        group: str,
        *,
        session_ms: int = 0,
        longest_ms: int = 0,
        retention_ms: int = 0,
        grace_ms: int = 0,
        delay_ms: int = LONGEST_DELAY_MS,
        now: Callable[[], int] | None = None,
    ) -> None:
        """The times are options of a member; 0 for a caller that is no member."""
        self.keys = GroupKeys(group)
        self.session_ms, self.delay_ms, self.client, self._now = session_ms, delay_ms, client, now
        self._times = {"session": session_ms, "longest": longest_ms, "retention": retention_ms, "grace": grace_ms}

    @classmethod
    def of(cls, client: RedisClient, settings: GroupSettings, now: Callable[[], int] | None = None) -> Self:
        """The calls for the group of these settings."""
        times = {"session_ms": settings.session_ms, "longest_ms": settings.longest_ms}
        times |= {
            "retention_ms": settings.retention_ms,
            "grace_ms": settings.growth_grace_ms,
            "delay_ms": settings.longest_delay_ms,
        }
        return cls(client, settings.group, **times, now=now)

    def now_ms(self) -> int:
        """Redis TIME in ms."""
        if self._now:
            return self._now()
        with self.client.reading() as redis:
            seconds, microseconds = redis.time()
        return seconds * 1_000 + microseconds // 1_000

    def run(self, verb: Verb[T], caller: Caller = NO_MEMBER, tp: TopicPartition | None = None, **given: Any) -> T:
        """Run a verb with its lists of keys and its arguments. Raises a `Verdict`, `StoreError`, `StateFormatError`."""
        return verb.reply(self._reply(verb, caller, tp, given))

    def ask(
        self, verb: Verb[T], caller: Caller = NO_MEMBER, tp: TopicPartition | None = None, **given: Any
    ) -> Answer[T]:
        """The same, with the state that the answer comes from."""
        reply = self._reply(verb, caller, tp, given)
        return answer(reply, verb.reply(reply))

    def _reply(self, verb: Verb[T], caller: Caller, tp: TopicPartition | None, given: Mapping[str, Any]) -> Reply:
        argument = verb.argument(self._call(caller), given)
        return self.client.run(verb.name, verb.keys_of(self.keys, caller.member, tp, given), [argument])

    def _call(self, caller: Caller) -> dict[str, str]:
        now = str(self._now()) if self._now else ""
        return asdict(caller) | {"now": now} | {name: str(ms) for name, ms in self._times.items()}

    def hash(self, key: str) -> dict[str, str]:
        """All fields of a hash."""
        with self.client.reading() as redis:
            return redis.hgetall(key)

    def hashes(self, keys: Iterable[str]) -> list[dict[str, str]]:
        """All fields of each hash, in one round trip."""
        with self.client.reading() as redis:
            pipeline = redis.pipeline(transaction=False)
            for key in keys:
                pipeline.hgetall(key)
            return pipeline.execute()

    def list_group(self) -> None:
        """Add the group to the list of groups."""
        with self.client.reading() as redis:
            redis.sadd(GROUPS, self.keys.group)

    def event(self, kind: str, why: str, member: str = "", ranges: Ranges | None = None) -> None:
        """Add an event to the events stream."""
        fields = {"event": kind, "member": member, "why": why} | ({"ranges": event_text(ranges)} if ranges else {})
        self.run(_EVENT, most=str(MOST_EVENTS), fields=flat(fields))

    def fence(self, what: str, caller: Caller, refused: Ranges) -> None:
        """Add a fence event for ranges that the caller no longer owns, if there are any."""
        if refused:
            why = f"{what} left out ranges that have moved since, as after a restart; their owner reads them"
            self.event("fence", why, caller.member, refused)


def answer(reply: Reply, value: T) -> Answer[T]:
    """The value of a reply, with the state that it came from."""
    return Answer(SeenState(reply["nonce"], int(reply["seq"]), reply["founding"]), value)
