"""The verbs of an operator: reset, delete, copies, policies. One script a method; none joins the group."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Self

from coordinator.group_state import KnownTopic
from coordinator.redis.calls import NOBODY, pairs
from coordinator.redis.client import RedisClient
from coordinator.redis.keys import GROUPS
from coordinator.redis.poison import PoisonVerbs
from coordinator.redis.policy import KEPT_MS, PolicyVerbs
from coordinator.subscription import TopicPartition


class OperatorVerbs(PolicyVerbs, PoisonVerbs):
    """The writes of `coop-kafka`. Every method may raise a `verdicts.Verdict` or a `StoreError`."""

    @classmethod
    def of_group(cls, client: RedisClient, group: str, now: Callable[[], int] | None = None) -> Self:
        """The verbs for a group, without settings of a member. `now` replaces Redis TIME in a simulation."""
        return cls(client, group, session_ms=0, longest_ms=0, retention_ms=0, now=now)

    def check(self) -> None:
        """Raise `Lost` if the state cannot be trusted: after a restart, until a member has recovered the group."""
        self._run("status", NOBODY, [self._keys.meta, self._keys.topics])

    def reset(
        self,
        nonce: str,
        epoch: int,
        since: int,
        why: str,
        topics: Mapping[str, KnownTopic],
        positions: Mapping[TopicPartition, int | None],
    ) -> None:
        """Move positions (None: it stays), and begin reset epoch `epoch` at `nonce`. All lane epochs are void.

        `positions` names every partition with positions. Raises `Busy` while a member's lease runs. Raises `Superseded`
        if `since`, the epoch at planning, is no longer in force. Then nothing is written.
        """
        k = self._keys
        fixed = [k.meta, k.leases, k.topics, k.events, k.batches, k.leaving, k.applications, k.targets, k.assignment]
        fixed += [k.strikes]
        per_partition = (
            key
            for tp in positions
            for key in (k.owners(tp), k.segments(tp), k.ics(tp), k.reserved(tp), k.stable(tp.topic))
        )
        moves = (
            f"{tp.topic} {topics[tp.topic]} {tp.partition} {'-' if position is None else position}"
            for tp, position in positions.items()
        )
        self._run("reset", NOBODY, [*fixed, *per_partition], nonce, str(epoch), str(since), why, *moves)

    def delete(self, names: Iterable[str]) -> int:
        """Delete those keys of the group at once, and its name. The answer is their number. Raises `Busy`."""
        deleted = self._delete(names, "delete")
        with self._client.reading() as redis:
            redis.srem(GROUPS, self._keys.group)
        return deleted

    def deletable(self, names: Iterable[str]) -> int:
        """The number of those keys, if they may be deleted now. Raises `Busy`."""
        return self._delete(names, "ask")

    def _delete(self, names: Iterable[str], what: str) -> int:
        k = self._keys
        (there,) = self._run("delete", NOBODY, [k.meta, k.leases, *sorted({*names} - {k.meta, k.leases})], what)
        return int(there)

    def copied(self, wanted: Callable[[str], bool]) -> dict[str, dict[str, str]]:
        """The `wanted` hashes of the group, at one moment. Their names leave out the prefix of the group."""
        names = [name for name in self.names() if wanted(self._short(name))]
        found = self._run("copy", NOBODY, names) if names else []
        return dict(zip(map(self._short, names), map(pairs, found), strict=True))

    def restore(self, hashes: Mapping[str, Mapping[str, str]], why: str) -> None:
        """Replace all keys of the group by these hashes, except its events. Raises `Busy`."""
        k = self._keys
        fixed = [k.meta, k.leases, k.events]
        others = [name for name in self.names() if name not in fixed]
        keys = [k.prefix + name for name in hashes]
        flat = (json.dumps([word for pair in of_one.items() for word in pair]) for of_one in hashes.values())
        self._run("restore", NOBODY, [*fixed, *others, *keys], why, str(len(keys)), str(KEPT_MS), *flat)
        with self._client.reading() as redis:
            redis.sadd(GROUPS, k.group)

    def _short(self, name: str) -> str:
        return name.removeprefix(self._keys.prefix)

    def names(self) -> list[str]:
        """Every key that Redis holds of the group, sorted."""
        with self._client.reading() as redis:
            return sorted(redis.scan_iter(f"{self._keys.prefix}*", count=1_000))
