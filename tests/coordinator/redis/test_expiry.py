"""A group's keys expire together, a retention after its last lease, after any kills (KIP-211). In real time."""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import pytest

from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.lane_lines import BatchLine
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.policies import KEPT_MS
from coordinator.redis.replies import Caller, Joining
from coordinator.redis.store import Store, store_of
from coordinator.values.verdicts import Absent
from store_world import LONGEST, OTHER, TOPICS, TP, WANTED, World, lane, offset
from streams import eventually

SESSION_MS, RETENTION_MS = 300, 1_500


@dataclass
class Kept:
    """A group that is kept for a second and a half, by the server's own clock."""

    client: RedisClient
    group: str

    def __post_init__(self) -> None:
        self.store = store_of(
            ScriptCalls(self.client, self.group, session_ms=SESSION_MS, longest_ms=LONGEST, retention_ms=RETENTION_MS)
        )
        self.store.positions.create("aa", TOPICS, {TP: 0})

    @property
    def keys(self) -> set[str]:
        return set(OperatorVerbs.of_group(self.client, self.group).names())

    def join(self, member: str = "m-1") -> Caller:
        fields = {"host": "h", "topics": "orders", "capacity": "1"}
        self.store.members.join(Caller(member, "i1"), "", Joining(fields, f"application of {member}"))
        return Caller(member, "i1", "aa", "0")

    def work(self, member: str = "m-1") -> Caller:
        """A member's calls before its first heartbeat, and after it."""
        me = self.join(member)
        occasion = self.store.members.look(me).value.occasion
        self.store.members.assign(me, occasion, "test 1", {member: WANTED})
        self.store.positions.acquire(me, WANTED)
        self.store.positions.authorize(me, offset(lane("aa.1", 0, 9)))
        self.store.positions.report_ends({TP: 9}, {TP: "1@9 reset=0 topic=id-1"})
        self.store.poison.working(me, "orders 0 0000000000000000-7fffffffffffffff 0-9;")
        self.store.reports.lanes(me, (), 0)
        self.store.reports.batch(BatchLine(member, 1, None, 1.0, 1, ""))
        self.store.reports.event("loss", "for the test")
        return me


def founded(group: Kept) -> None:
    """Its first query was refused by a policy, or killed."""


def killed_before_its_first_heartbeat(group: Kept) -> None:
    group.work()


def killed(group: Kept) -> None:
    group.store.members.heartbeat(group.work())


def killed_as_it_joined_others(group: Kept) -> None:
    group.store.members.heartbeat(group.work())
    group.store.positions.create("", TOPICS, {OTHER: 0})
    me = group.join("m-2")
    group.store.members.leave(me, {TP: ()})
    group.store.members.finish(group.join("m-3"), {TP: 0})


LIVES = [founded, killed_before_its_first_heartbeat, killed, killed_as_it_joined_others]


@pytest.fixture
def client(redis_url: str) -> RedisClient:
    return RedisClient(redis_url)


def test_all_keys_of_a_group_expire_with_it_after_each_way_to_end(client: RedisClient, group: str) -> None:
    groups = [(live, Kept(client, f"{group} {live.__name__}")) for live in LIVES]
    with closing(client):
        for live, kept in groups:
            live(kept)
        for live, kept in groups:
            eventually(lambda kept=kept: not kept.keys, f"{live.__name__}: {kept.keys} is left", 20)  # type: ignore[misc]


def test_nothing_expires_while_a_member_lives(client: RedisClient, group: str) -> None:
    kept = Kept(client, group)
    with closing(client):
        me = kept.work()
        at_first, end = kept.keys, time.monotonic() + (SESSION_MS + 2 * RETENTION_MS) / 1000
        while time.monotonic() < end:
            kept.store.members.heartbeat(me, reading=True)
        assert kept.keys == at_first


@pytest.mark.parametrize(
    "write",
    [
        pytest.param(lambda store: store.reports.event("loss", "late"), id="an event"),
        pytest.param(lambda store: store.reports.batch(BatchLine("m-1", 1, None, 1.0, 1, "")), id="a batch"),
    ],
)
def test_a_report_about_a_deleted_group_makes_no_key(world: World, write: Callable[[Store], None]) -> None:
    write(world.store)
    assert OperatorVerbs.of_group(world.client, world.group).names() == []


def test_log_ends_of_a_deleted_group_make_no_key(world: World) -> None:
    with pytest.raises(Absent):
        world.store.positions.report_ends({TP: 9}, {})
    assert OperatorVerbs.of_group(world.client, world.group).names() == []


def test_a_policy_of_a_group_that_never_comes_goes_after_a_week(world: World) -> None:
    world.policies.set_policy({"accept.individual.commit": "false"})
    names = OperatorVerbs.of_group(world.client, world.group).names()
    assert [name.rpartition(":")[2] for name in names] == ["events", "policy"]
    assert all(0 < world.redis.pttl(name) <= KEPT_MS for name in names)
