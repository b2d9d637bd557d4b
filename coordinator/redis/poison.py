"""The verbs of poison: what a member's tasks are at, strikes when it is lost over it, and forgiveness (spec 7)."""

from collections.abc import Iterable

from coordinator.plan.poison import Strike
from coordinator.progress.ownership import Ownership
from coordinator.redis.calls import NOBODY, Answer, Caller, ScriptCalls, answer, owned_text
from coordinator.redis.errors import sound


class PoisonVerbs(ScriptCalls):
    """What keeps a record whose reading never ends from walking through the group."""

    def working(self, caller: Caller, text: str) -> Answer[None]:
        """Say what slices are begun and not ended, as `poison.working_text` writes them; empty when a batch is over."""
        k = self._keys
        keys = [k.meta, k.leases, k.member(caller.member), k.working]
        return answer(self._run("working", caller, keys, text), None)

    def abandon(self, caller: Caller, ranges: Ownership) -> Answer[None]:
        """Give ranges up at their lane epochs: who was given a batch without them can never commit them with it."""
        k = self._keys
        keys = [k.meta, k.member(caller.member), k.events, *map(k.owners, ranges)]
        return answer(self._run("abandon", caller, keys, *map(owned_text, ranges.values())), None)

    def at_work(self) -> frozenset[str]:
        """The members that have said what they are at."""
        with self._client.reading() as redis:
            return frozenset(redis.hgetall(self._keys.working))

    def strike(self, member: str) -> None:
        """Strike what `member` was at, if its lease or its longest batch is over; anybody may ask, any time."""
        k = self._keys
        keys = [k.meta, k.leases, k.batches, k.events, k.working, k.strikes]
        self._run("strike", NOBODY, keys, member)

    @sound
    def strikes(self) -> tuple[Strike, ...]:
        """Every strike that was not taken back."""
        with self._client.reading() as redis:
            found = redis.hgetall(self._keys.strikes)
        return tuple(sorted(Strike.parse(field, value) for field, value in found.items()))

    def forgive(self, strikes: Iterable[Strike], why: str = "") -> int:
        """Take strikes back, `why` if an operator does it; how many there were."""
        k = self._keys
        reply = self._run("forgive", NOBODY, [k.meta, k.events, k.strikes], why, *(s.field for s in strikes))
        return int(reply[2])
