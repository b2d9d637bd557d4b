"""A group's store on a real Redis with a clock of its own, and short words for offsets; for the tests of its verbs."""

import secrets
import time
from collections.abc import Mapping
from typing import Any, cast

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.assignors.assignor import Assignment
from coordinator.progress.ownership import Facts, completed
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.connection import opened
from coordinator.redis.group_state import STANDBY
from coordinator.redis.keys import GroupKeys
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.policies import RedisPolicies
from coordinator.redis.replies import Caller, Joining
from coordinator.redis.store import Store, store_of
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import Topic, TopicPartition

TP, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
TOPICS = {"orders": Topic("orders", "id-1", (0, 1))}
LOWER, UPPER = cuts(2)
SESSION, LONGEST = 1_000, 5_000
WANTED: Ranges = {TP: (WHOLE,)}
NO_MEMBER = Caller()
FIELDS = {"host": "h", "topics": "orders", "capacity": "1"}
BIG = 2**53 + 1  # a double cannot distinguish this from 2^53


class StoreServer:
    """A server with two clients for all tests: the store's, and one that does what the store never does."""

    def __init__(self, url: str, client: RedisClient | None = None) -> None:
        self.url, self.client, self.redis = url, client or RedisClient(url), opened(url, 5.0)

    def close(self) -> None:
        self.client.close()
        self.redis.close()


class World:
    """A store of one group with a clock that stands still until it is moved."""

    def __init__(self, server: "StoreServer", name: str = "store") -> None:
        self.url, self.client, self.redis = server.url, server.client, server.redis
        self.group = f"{name} {secrets.token_hex(4)}"
        self.now = time.time_ns() // 1_000_000
        self.store, self.policies = self.store_with(), RedisPolicies(self._calls())

    def store_with(self, **times: int) -> Store:
        """The calls of a member with other times, as `ScriptCalls` names them."""
        return store_of(self._calls(**times))

    def _calls(self, **times: int) -> ScriptCalls:
        all_times = {"session_ms": SESSION, "longest_ms": LONGEST, "retention_ms": 60_000} | times
        return ScriptCalls(self.client, self.group, **all_times, now=lambda: self.now)

    def found(self, **positions: int) -> None:
        tps = {"p0": TP, "p1": OTHER}
        self.store.positions.create("aa", TOPICS, {tps[n]: p for n, p in positions.items()} or {TP: 0})

    def lapse(self, ms: int) -> None:
        """Time passes, and some member calls until its end: Redis was not away (rule: outage-grace)."""
        self.now += ms
        if self.redis.exists(meta := GroupKeys(self.group).meta):
            self.redis.hset(meta, "heard_at", self.now)

    def join(
        self, member: str = "m-1", incarnation: str = "i1", before: str = "", application: str = "", **fields: str
    ) -> Caller:
        return self._joined(member, incarnation, before, Joining(FIELDS | fields, application))

    def owner(self, ics: Mapping[str, str] | None = None, **positions: int) -> Caller:
        """The member of a new group, which owns all hashes of its first partition, with those individual commits."""
        self.found(**positions)
        self.set_ics(ics or {})
        me = self.join()
        self.store.positions.acquire(me, WANTED)
        return me

    def assign(self, caller: Caller, assignment: Assignment) -> int:
        """An assignment that this member computes; its generation."""
        occasion = self.store.members.look(caller).value.occasion
        return self.store.members.assign(caller, occasion, "test 1", assignment).value

    def commit(self, caller: Caller, end: StreamOffset) -> Facts:
        """Commit a batch that was read to its planned ends; the facts that Redis refuses."""
        return self.store.positions.commit(caller, end, completed(end)).value.refused

    def pin(self, member: str, *ranges: HashRange, tp: TopicPartition = TP, incarnation: str = "i1") -> Caller:
        """A pinned member that names these ranges."""
        return self._joined(member, incarnation, "", Joining(FIELDS, pinned={tp: ranges}))

    def aiming(self, member: str, targets: Mapping[TopicPartition, int]) -> Caller:
        """A member of a run with AvailableNow."""
        return self._joined(member, "i1", "", Joining(FIELDS, targets=targets))

    def filtering(self, member: str, text: str, incarnation: str = "i1") -> Caller:
        """A member whose record filter has this text."""
        return self._joined(member, incarnation, "", Joining(FIELDS, filter=text))

    def standing_by(self, member: str, incarnation: str = "i1", before: str = "", role: str = STANDBY) -> Caller:
        """A member that wants to be a standby."""
        return self._joined(member, incarnation, before, Joining(FIELDS, role=role))

    def _joined(self, member: str, incarnation: str, before: str, joining: Joining) -> Caller:
        answer = self.store.members.join(Caller(member, incarnation), before, joining)
        return Caller(member, incarnation, answer.seen.nonce, str(answer.seen.seq))

    def joining(self, member: str, incarnation: str = "i1", before: str = "", **how: Any) -> Caller:
        """A member that joins with these fields of `Joining`."""
        return self._joined(member, incarnation, before, Joining(FIELDS, **how))

    def logs_reach(self, end: int = 2**62) -> None:
        """A member's store call after a look at the logs."""
        self.store.positions.report_ends({TP: end, OTHER: end}, {})

    def caller(self, member: str) -> Caller:
        """A member as it joined last."""
        fields = self.redis.hgetall(GroupKeys(self.group).member(member))
        return Caller(member, cast(dict[str, str], fields)["incarnation"], "aa", "0")

    def events(self, kind: str) -> list[str]:
        """Why there were events of this kind, in order."""
        entries = cast(list[tuple[str, dict[str, str]]], self.redis.xrange(GroupKeys(self.group).events))
        return [fields["why"] for _, fields in entries if fields["event"] == kind]

    def longest_times(self) -> dict[str, int]:
        """The longest times of the members, by name."""
        meta = cast(dict[str, str], self.redis.hgetall(GroupKeys(self.group).meta))
        return {name: int(meta[f"{name}_ms"]) for name in ("session", "longest", "retention", "grace")}

    def positions(self, tp: TopicPartition = TP) -> dict[str, str]:
        with self.client.reading() as reading:
            return reading.hgetall(GroupKeys(self.group).segments(tp))

    def ics(self, tp: TopicPartition = TP) -> dict[str, str]:
        with self.client.reading() as reading:
            return reading.hgetall(GroupKeys(self.group).ics(tp))

    def set_ics(self, ics: Mapping[str, str]) -> None:
        """The individual commits: "lo-hi" -> "45-47 50-50"."""
        for hashes, text in ics.items():
            self.redis.hset(GroupKeys(self.group).ics(TP), hashes, text)

    def delete_ics(self) -> None:
        """The changes that an operator may make at any time."""
        self.redis.delete(GroupKeys(self.group).ics(TP))

    def kept_for_ever(self) -> list[str]:
        """The keys of the group that do not expire."""
        names = OperatorVerbs.of_group(self.client, self.group).names()
        return [name for name in names if self.redis.pttl(name) == -1]

    def outlive(self, *living: Caller) -> None:
        """Let the leases of all members end but of these, which beat meanwhile."""
        for ms in (SESSION - 1, 2):
            self.lapse(ms)
            for member in living:
                self.store.members.heartbeat(member)

    def restart(self) -> None:
        """Write another run id to the group, as if the server had been restarted."""
        self.redis.hset(GroupKeys(self.group).meta, "run_id", "0")


def offset(*lanes: Lane, reset: int = 0, topic_id: str = "id-1") -> StreamOffset:
    return StreamOffset("g", "m-1", reset, {"orders": topic_id}, {TP: lanes})


def lane(epoch: str, start: int, until: int, hashes: HashRange = WHOLE) -> Lane:
    return Lane(hashes, epoch, start, (OffsetRange(start, until),))
