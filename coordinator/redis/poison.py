"""Slices under way, strikes and failing records in Redis. `ports.Poison` describes each verb."""

from collections.abc import Sequence
from dataclasses import dataclass

from coordinator.plan.poison import Strike
from coordinator.progress.failing import FailingRecord
from coordinator.progress.ownership import Ownership
from coordinator.redis.calls import ScriptCalls, flat, owned_text
from coordinator.redis.errors import sound
from coordinator.redis.replies import Answer, Caller
from coordinator.redis.verb import nothing, number, verb

_WORKING = verb("working", "meta leases member working", "slices", nothing)
_STRIKE = verb("strike", "meta leases batches events working strikes", "member", nothing)
_FORGIVE = verb("forgive", "meta events records=strikes", "why records", number("forgiven"))
_RESUME = verb("forgive", "meta events records=failing", "why records", number("forgiven"))
_ABANDON = verb("abandon", "meta leases member events", "ranges", nothing, partitions="owners")


@dataclass(frozen=True, slots=True)
class RedisPoison:
    """The calls about slices that tasks are reading, strikes, and failing records."""

    calls: ScriptCalls

    def at_work(self) -> frozenset[str]:
        return frozenset(self.calls.hash(self.calls.keys.working))

    def working(self, caller: Caller, text: str) -> Answer[None]:
        return self.calls.ask(_WORKING, caller, slices=text)

    def strike(self, member: str) -> None:
        self.calls.run(_STRIKE, member=member)

    @sound
    def strikes(self) -> tuple[Strike, ...]:
        found = self.calls.hash(self.calls.keys.strikes)
        return tuple(sorted(Strike.parse(field, value) for field, value in found.items()))

    def forgive(self, strikes: Sequence[Strike], why: str = "") -> int:
        return self.calls.run(_FORGIVE, why=why, records=flat({s.field: "" for s in strikes}))

    @sound
    def failing(self) -> tuple[FailingRecord, ...]:
        found = self.calls.hash(self.calls.keys.failing)
        return tuple(sorted(FailingRecord.parse(field, value) for field, value in found.items()))

    def resume(self, records: Sequence[FailingRecord], why: str = "") -> int:
        return self.calls.run(_RESUME, why=why, records=flat({record.field: record.text for record in records}))

    def abandon(self, caller: Caller, ranges: Ownership) -> Answer[None]:
        return self.calls.ask(_ABANDON, caller, ranges=[*map(owned_text, ranges.values())], partitions=ranges)
