"""The verbs of an operator: reset, delete, copies, policies. One script a method; none joins the group."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from coordinator.redis.calls import ScriptCalls, flat, pairs
from coordinator.redis.client import RedisClient
from coordinator.redis.group_state import KnownTopic
from coordinator.redis.keys import GROUPS
from coordinator.redis.poison import RedisPoison
from coordinator.redis.policies import KEPT_MS, RedisPolicies
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition


@dataclass(frozen=True, slots=True)
class OperatorVerbs:
    """The writes of `coop-kafka`. Every method may raise a `verdicts.Verdict` or a `StoreError`."""

    calls: ScriptCalls

    @classmethod
    def of_group(cls, client: RedisClient, group: str, now: Callable[[], int] | None = None) -> Self:
        """The verbs for a group, without settings of a member. `now` replaces Redis TIME in a simulation."""
        return cls(ScriptCalls(client, group, now=now))

    @property
    def policies(self) -> RedisPolicies:
        """The group's policies."""
        return RedisPolicies(self.calls)

    @property
    def poison(self) -> RedisPoison:
        """The group's strikes."""
        return RedisPoison(self.calls)

    def now_ms(self) -> int:
        """Redis TIME in ms."""
        return self.calls.now_ms()

    def check(self) -> None:
        """Raise `Lost` if the state cannot be trusted: after a restart, until a member has recovered the group."""
        k = self.calls.keys
        self.calls.run("status", [k.meta, k.topics, k.leases])

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
        k = self.calls.keys
        fixed = [k.meta, k.leases, k.topics, k.events, k.batches, k.leaving, k.applications, k.targets, k.assignment]
        fixed += [k.strikes, k.failing]
        per_partition = (
            key
            for tp in positions
            for key in (k.owners(tp), k.segments(tp), k.ics(tp), k.reserved(tp), k.stable(tp.topic))
        )
        moves = (
            f"{tp.topic} {topics[tp.topic]} {tp.partition} {'-' if position is None else position}"
            for tp, position in positions.items()
        )
        self.calls.run("reset", [*fixed, *per_partition], nonce, str(epoch), str(since), why, *moves)

    def drain(self, members: Iterable[str], why: str) -> tuple[int, int]:
        """Make these working members standbys. Their number, and that of the others; without others, none of them."""
        k = self.calls.keys
        keys = [k.meta, k.leases, k.events, k.batches, k.leaving, k.assignment, k.standbys]
        reply = self.calls.run("drain", keys, why, *members)
        return int(reply["drained"]), int(reply["others"])

    def exists(self) -> bool:
        """Whether Redis has the group."""
        return bool(self.calls.hash(self.calls.keys.meta))

    def found(
        self,
        nonce: str,
        why: str,
        topics: Mapping[str, KnownTopic],
        places: Mapping[TopicPartition, tuple[int, tuple[OffsetRange, ...]]],
    ) -> bool:
        """Create the group at positions, and at done offsets above them. False if Redis has something of it already.

        A query of the group must start within a week. Without members, the group expires then.
        """
        k, calls = self.calls.keys, ScriptCalls(self.calls.client, self.calls.keys.group, retention_ms=KEPT_MS)
        per_partition = (key for tp in places for key in (k.segments(tp), k.ics(tp), k.stable(tp.topic)))
        ics = json.dumps([" ".join(map(str, above)) for _, above in places.values()])
        texts = (f"{tp.topic} {topics[tp.topic]} {tp.partition} {at}" for tp, (at, _) in places.items())
        reply = calls.run("found", [k.meta, k.topics, k.events, *per_partition], nonce, why, ics, *texts)
        calls.list_group()
        return bool(int(reply["founded"]))

    def delete(self, names: Iterable[str]) -> int:
        """Delete those keys of the group at once, and its name. The answer is their number. Raises `Busy`."""
        deleted = self._delete(names, "delete")
        with self.calls.client.reading() as redis:
            redis.srem(GROUPS, self.calls.keys.group)
        return deleted

    def deletable(self, names: Iterable[str]) -> int:
        """The number of those keys, if they may be deleted now. Raises `Busy`."""
        return self._delete(names, "ask")

    def _delete(self, names: Iterable[str], what: str) -> int:
        k = self.calls.keys
        keys = [k.meta, k.leases, *sorted({*names} - {k.meta, k.leases})]
        return int(self.calls.run("delete", keys, what)["keys"])

    def copied(self, wanted: Callable[[str], bool]) -> dict[str, dict[str, str]]:
        """The `wanted` hashes of the group, at one moment. Their names leave out the prefix of the group."""
        names = [name for name in self.names() if wanted(self._short(name))]
        found = self.calls.run("copy", names)["hashes"] if names else []
        return dict(zip(map(self._short, names), map(pairs, found), strict=True))

    def restore(self, hashes: Mapping[str, Mapping[str, str]], why: str) -> None:
        """Replace all keys of the group by these hashes, except its events. Raises `Busy`."""
        k = self.calls.keys
        fixed = [k.meta, k.leases, k.events]
        others = [name for name in self.names() if name not in fixed]
        keys = [k.prefix + name for name in hashes]
        texts = (json.dumps(flat(of_one)) for of_one in hashes.values())
        self.calls.run("restore", [*fixed, *others, *keys], why, str(len(keys)), str(KEPT_MS), *texts)
        self.calls.list_group()

    def _short(self, name: str) -> str:
        return name.removeprefix(self.calls.keys.prefix)

    def names(self) -> list[str]:
        """Every key that Redis holds of the group, sorted."""
        with self.calls.client.reading() as redis:
            return sorted(redis.scan_iter(f"{self.calls.keys.prefix}*", count=1_000))
