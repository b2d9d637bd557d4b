"""The verbs of an operator: reset, delete, copies, policies. One script a method; none joins the group."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.group_state import KnownTopic
from coordinator.redis.keys import GROUPS
from coordinator.redis.poison import RedisPoison
from coordinator.redis.policies import KEPT_MS, RedisPolicies
from coordinator.redis.position_verbs import STATUS
from coordinator.redis.script_texts import flat, pairs, place
from coordinator.redis.verb import nothing, number, verb
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition

_RESET = verb(
    "reset",
    "meta leases topics events batches leaving applications targets assignment strikes failing",
    "nonce epoch since why places",
    nothing,
    partitions="owners segments ics reserved stable",
)
_DRAIN = verb(
    "drain",
    "meta leases events batches leaving assignment standbys",
    "why members",
    lambda reply: (int(reply["drained"]), int(reply["others"])),
)
_DELETE = verb("delete", "meta leases", "count_only seen", number("keys"), others="")
_COPY = verb("copy", "", "", lambda reply: [pairs(found) for found in reply["hashes"]], hashes="")
_RESTORE = verb("restore", "meta leases events", "why kept_ms hashes seen", nothing, others="", copied="")
_FOUND = verb(
    "found", "meta topics events", "nonce why places ics", number("founded"), partitions="segments ics stable"
)


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
        self.calls.run(STATUS)

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
        self.calls.run(
            _RESET,
            nonce=nonce,
            epoch=str(epoch),
            since=str(since),
            why=why,
            places=_places(topics, positions),
            partitions=positions,
        )

    def drain(self, members: Iterable[str], why: str) -> tuple[int, int]:
        """Make these working members standbys. Their number, and that of the others; without others, none of them."""
        return self.calls.run(_DRAIN, why=why, members=[*members])

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
        calls = ScriptCalls(self.calls.client, self.calls.keys.group, retention_ms=KEPT_MS)
        positions = _places(topics, {tp: at for tp, (at, _) in places.items()})
        ics = [" ".join(map(str, above)) for _, above in places.values()]
        founded = calls.run(_FOUND, nonce=nonce, why=why, places=positions, ics=ics, partitions=places)
        calls.list_group()
        return founded > 0

    def delete(self) -> int:
        """Delete all keys of the group at once, and its name. The answer is their number.

        Raises `Busy`, and `Superseded` if the group has changed since the call has listed its keys.
        """
        deleted = self._delete(count_only=False)
        with self.calls.client.reading() as redis:
            redis.srem(GROUPS, self.calls.keys.group)
        return deleted

    def deletable(self) -> int:
        """The number of keys of the group, if they may be deleted now. Raises `Busy`."""
        return self._delete(count_only=True)

    def _delete(self, *, count_only: bool) -> int:
        k, seen = self.calls.keys, self._seen()
        others = [name for name in self.names() if name not in (k.meta, k.leases)]
        return self.calls.run(_DELETE, count_only=count_only, seen=seen, others=others)

    def _seen(self) -> str:
        """The state of the group. While it is in force, the group gets no other keys."""
        meta = self.calls.hash(self.calls.keys.meta)
        return f"{meta.get('nonce', '')} {meta.get('commit_seq', '')}"

    def copied(self, wanted: Callable[[str], bool]) -> dict[str, dict[str, str]]:
        """The `wanted` hashes of the group, at one moment. Their names leave out the prefix of the group."""
        names = [name for name in self.names() if wanted(self._short(name))]
        found = self.calls.run(_COPY, hashes=names) if names else []
        return dict(zip(map(self._short, names), found, strict=True))

    def restore(self, hashes: Mapping[str, Mapping[str, str]], why: str) -> None:
        """Replace all keys of the group by these hashes, except its events. Raises `Busy` and `Superseded`."""
        k, seen = self.calls.keys, self._seen()
        self.calls.run(
            _RESTORE,
            why=why,
            kept_ms=str(KEPT_MS),
            hashes=[flat(fields) for fields in hashes.values()],
            seen=seen,
            others=[name for name in self.names() if name not in (k.meta, k.leases, k.events)],
            copied=[k.prefix + name for name in hashes],
        )
        self.calls.list_group()

    def _short(self, name: str) -> str:
        return name.removeprefix(self.calls.keys.prefix)

    def names(self) -> list[str]:
        """Every key that Redis holds of the group, sorted."""
        with self.calls.client.reading() as redis:
            return sorted(redis.scan_iter(f"{self.calls.keys.prefix}*", count=1_000))


def _places(topics: Mapping[str, KnownTopic], positions: Mapping[TopicPartition, int | None]) -> list[dict[str, str]]:
    return [place(tp, topics[tp.topic].id, topics[tp.topic].partitions, at) for tp, at in positions.items()]
