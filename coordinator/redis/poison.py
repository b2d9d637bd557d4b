"""The verbs of poison: slices that tasks are reading, strikes of a lost member, and their removal."""

from collections.abc import Iterable

from coordinator.plan.poison import Strike
from coordinator.progress.ownership import Ownership
from coordinator.redis.calls import NOBODY, Answer, Caller, ScriptCalls, answer, owned_text
from coordinator.redis.errors import sound


class PoisonVerbs(ScriptCalls):
    """The calls that keep a hung record from stopping the group member by member."""

    def working(self, caller: Caller, text: str) -> Answer[None]:
        """Write the slices that are begun and not ended, as `poison.working_text` has them; empty after a batch."""
        k = self._keys
        keys = [k.meta, k.leases, k.member(caller.member), k.working]
        return answer(self._run("working", caller, keys, text), None)

    def abandon(self, caller: Caller, ranges: Ownership) -> Answer[None]:
        """Free ranges at their lane epochs: a batch that leaves them out can never commit them."""
        k = self._keys
        keys = [k.meta, k.member(caller.member), k.events, *map(k.owners, ranges)]
        return answer(self._run("abandon", caller, keys, *map(owned_text, ranges.values())), None)

    def at_work(self) -> frozenset[str]:
        """The members that have written slices."""
        with self._client.reading() as redis:
            return frozenset(redis.hgetall(self._keys.working))

    def strike(self, member: str) -> None:
        """Strike the slices of `member` if its lease or its longest batch is over. Any member may call this."""
        k = self._keys
        keys = [k.meta, k.leases, k.batches, k.events, k.working, k.strikes]
        self._run("strike", NOBODY, keys, member)

    @sound
    def strikes(self) -> tuple[Strike, ...]:
        """Every strike in force."""
        with self._client.reading() as redis:
            found = redis.hgetall(self._keys.strikes)
        return tuple(sorted(Strike.parse(field, value) for field, value in found.items()))

    def forgive(self, strikes: Iterable[Strike], why: str = "") -> int:
        """Remove strikes; `why` is the reason of an operator. The answer is their number."""
        k = self._keys
        reply = self._run("forgive", NOBODY, [k.meta, k.events, k.strikes], why, *(s.field for s in strikes))
        return int(reply[2])
