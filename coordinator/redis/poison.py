"""Slices under way, strikes and failing records in Redis."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.plan.poison import Strike
from coordinator.progress.failing import FailingRecord
from coordinator.progress.ownership import Ownership
from coordinator.redis.replies import Answer, Caller
from coordinator.redis.script_texts import flat, owned_text
from coordinator.redis.verb import nothing, number, sound, verb

if TYPE_CHECKING:
    from coordinator.redis.calls import ScriptCalls

_WORKING = verb("working", "meta leases member working", "slices", nothing)
_STRIKE = verb("strike", "meta leases batches events working strikes", "member", nothing)
_FORGIVE = verb("forgive", "meta events records=strikes", "why records", number("forgiven"))
_RESUME = verb("forgive", "meta events records=failing", "why records", number("forgiven"))
_ABANDON = verb("abandon", "meta leases member events", "ranges", nothing, partitions="owners")


@dataclass(frozen=True, slots=True)
class RedisPoison:
    """The calls about slices that tasks are reading, strikes, and failing records."""

    calls: "ScriptCalls"

    def at_work(self) -> frozenset[str]:
        """The members that have written slices."""
        return frozenset(self.calls.hash(self.calls.keys.working))

    def working(self, caller: Caller, text: str) -> Answer[None]:
        """Write the slices that are begun and not ended, as `poison.working_text` has them; empty after a batch."""
        return self.calls.ask(_WORKING, caller, slices=text)

    def strike(self, member: str) -> None:
        """Strike the slices of `member` if its lease or its longest batch is over. Any member may call this."""
        self.calls.run(_STRIKE, member=member)

    @sound
    def strikes(self) -> tuple[Strike, ...]:
        """Every strike in force."""
        found = self.calls.hash(self.calls.keys.strikes)
        return tuple(sorted(Strike.parse(field, value) for field, value in found.items()))

    def forgive(self, strikes: Sequence[Strike], why: str = "") -> int:
        """Remove strikes; `why` is the reason of an operator. The answer is their number."""
        return self.calls.run(_FORGIVE, why=why, records=flat({s.field: "" for s in strikes}))

    @sound
    def failing(self) -> tuple[FailingRecord, ...]:
        """Every failing record."""
        found = self.calls.hash(self.calls.keys.failing)
        return tuple(sorted(FailingRecord.parse(field, value) for field, value in found.items()))

    def resume(self, records: Sequence[FailingRecord], why: str = "") -> int:
        """Remove failing records, unless newer ones replaced them; `why` is the reason of an operator. Their number."""
        return self.calls.run(_RESUME, why=why, records=flat({record.field: record.text for record in records}))

    def abandon(self, caller: Caller, ranges: Ownership) -> Answer[None]:
        """Free ranges at their lane epochs: a batch that leaves them out can never commit them."""
        return self.calls.ask(_ABANDON, caller, ranges=[*map(owned_text, ranges.values())], partitions=ranges)
