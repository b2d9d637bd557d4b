"""The life of a group from its founding to its deletion, through every script and every plain command of ours."""

from collections.abc import Sequence
from contextlib import closing
from importlib.resources import files

from coordinator.progress.growth import Growth
from coordinator.progress.ownership import Fact, Owned, completed
from coordinator.progress.stream_offset import Lane
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.commits import CommitVerbs, Reservation
from coordinator.redis.events import follow, last_events
from coordinator.redis.group_state import KnownTopic
from coordinator.redis.keys import GroupKeys
from coordinator.redis.lane_lines import BatchLine
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.replies import Caller, Joining
from coordinator.redis.snapshot import list_groups, read_group
from coordinator.redis.verb import Reply
from coordinator.tools.operations import copies
from coordinator.values import verdicts
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import Topic, TopicPartition
from store_world import LOWER, OTHER, SESSION, TOPICS, TP, UPPER, WANTED, StoreServer, World, lane, offset

VERBS = {script.name[:-4] for script in (files("coordinator.redis") / "lua").iterdir() if script.is_file()}
PAYMENTS = TopicPartition("payments", 0)
EVENTS = {
    "forget",
    "found",
    "mend",
    "growth",
    "policy",
    "ordering",
    "join",
    "plan",
    "assigned",
    "revoked",
    "parked",
    "release",
    "lost",
} | {
    "drain",
    "expire",
    "leave",
    "recover",
    "reset",
    "strike",
}


class Recorded(RedisClient):
    """A client that remembers the first call of each verb: its keys and arguments."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.calls: dict[str, tuple[Sequence[str], Sequence[str]]] = {}

    def run(self, verb: str, keys: Sequence[str], args: Sequence[str]) -> Reply:
        self.calls.setdefault(verb, (keys, args))
        return super().run(verb, keys, args)


class Life:
    """One group on one server; `live` goes through all of it."""

    def __init__(self, url: str) -> None:
        self.url = url

    def live(self) -> None:
        """Every step must do what it is for; raises what a server refuses."""
        with closing(Recorded(self.url)) as client, closing(StoreServer(self.url, client)) as server:
            world = World(server)
            for step in (self._founded, self._shared, self._committed, self._poisoned, self._handed_over):
                step(world)
                assert not world.kept_for_ever(), f"after {step.__name__}"
            self._lost_and_reset(world)
            self._without_order(world)
            assert not world.kept_for_ever()
            self._imported(world)
            self._seen_and_deleted(world)
            self.calls = client.calls
            assert self.calls.keys() == VERBS

    def _founded(self, world: World) -> None:
        world.client.require_noeviction()
        world.found(p0=5)
        store = world.store
        world.redis.hset(GroupKeys(world.group).stable("orders"), "1", "0")  # it had positions, which are gone
        store.positions.create("", {"orders": Topic("orders", "id-1", (0, 1, 2, 3))}, {OTHER: 0}, grace_ms=9)
        (growth,) = store.positions.growths()
        assert (growth.old, growth.new) == (2, 4)
        store.positions.grow([Growth("orders", "id-1", 4, 8, 1, 2)])
        assert world.policies.set_policy({"accept.range.fetch:orders": "true"}) == store.policies.policy()
        store.policies.copy("id-p 1", store.policies.policy())
        assert dict(store.positions.positions([TP])) == {TP: ((WHOLE, 5),)}

    def _shared(self, world: World) -> None:
        store, one, two = world.store, world.join(targets_of_orders="9"), world.join("m-2", "i2")
        look = store.members.look(one).value
        assert [s.member for s in store.members.subscribers(look.members)] == ["m-1", "m-2"]
        wanted = {"m-1": {TP: (LOWER,)}, "m-2": {TP: (UPPER,)}}
        assert store.members.assign(one, look.occasion, "test 1", wanted).value == 1
        assert store.members.assignment() == wanted
        assert store.positions.acquire(one, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.1"),)}
        assert store.members.release(one, WANTED).value == 1
        assert store.positions.acquire(two, {TP: (UPPER,)}).value.ownership == {TP: (Owned(UPPER, "aa.2"),)}
        assert OperatorVerbs.of_group(world.client, world.group, now=lambda: world.now).drain(["m-2"], "a test") == (
            1,
            1,
        )
        store.members.heartbeat(one)
        store.positions.create("", {"payments": Topic("payments", "id-9", (0,))}, {PAYMENTS: 1})
        assert store.members.forget(one, ("payments",)).value == ()
        world.redis.hset(GroupKeys(world.group).meta, "unsubscribed payments", world.now - 60_000)
        assert store.members.forget(one, ("payments",)).value == (PAYMENTS,)

    def _committed(self, world: World) -> None:
        store, one = world.store, world.caller("m-1")
        store.positions.report_ends({TP: 20}, {})
        end = offset(Lane(LOWER, "aa.1", 5, (OffsetRange(5, 10),)))
        assert store.positions.authorize(one, end).value.owned == {TP: (Owned(LOWER, "aa.1"),)}
        assert store.positions.seal(one, end.digest, {}).value
        assert store.positions.commit(one, end, completed(end)).value.refused == {}
        commits = CommitVerbs(ScriptCalls(world.client, world.group, session_ms=SESSION, longest_ms=1, retention_ms=1))
        caller, _ = commits.member("m-1")
        standing = commits.standing(caller)
        done = commits.commit_ranges(standing, TP, standing.lanes[TP], (OffsetRange(12, 14),), 10)
        assert (done.word, done.stable, world.ics()) == ("COMMITTED", 5, {str(LOWER): "12-13"})
        reserved = commits.reserve(
            standing, TP, Reservation("A", OffsetRange(10, 11), standing.lanes[TP]), "held", SESSION
        )
        assert reserved.word == "TURN"
        assert not store.members.finish(one, {TP: 10}).value
        assert store.positions.stable(["orders"])[TP] == 5

    def _poisoned(self, world: World) -> None:
        store, two = world.store, world.caller("m-2")
        store.reports.lanes(two, (), 0)
        store.reports.batch(BatchLine("m-2", 1, None, 1.0, 1, ""))
        for _ in range(3):
            store.poison.working(two, f"orders 0 {UPPER} 5-6 one;")
            assert store.poison.at_work() == {"m-2"}
            world.now += 2 * SESSION
            store.poison.strike("m-2")
            store.members.heartbeat(two)
        (strike,) = store.poison.strikes()
        assert strike.parked
        assert store.poison.forgive([strike], "an operator") == 1
        store.poison.abandon(world.caller("m-1"), {TP: (Owned(UPPER, "aa.99"),)})

    def _handed_over(self, world: World) -> None:
        store, one = world.store, world.join()
        world.lapse(2 * SESSION)
        three = world.join("m-3", "i3")
        assert store.positions.acquire(three, {TP: (UPPER,)}).value.ownership == {TP: (Owned(UPPER, "aa.3"),)}
        look = store.members.look(three).value
        assert store.members.assign(three, look.occasion, "test 1", {"m-3": WANTED}).value == 2
        store.positions.claim(offset(lane("aa.1", 0, 9)), {TP: (Fact(WHOLE, 9),)})
        assert store.members.leave(three, {TP: ()}) == 0
        store.members.heartbeat(one)
        store.positions.recreate({"orders": Topic("orders", "id-2", (0, 1, 2, 3))}, {TP: 7})

    def _lost_and_reset(self, world: World) -> None:
        world.restart()
        store, caller = world.store, world.caller("m-1")
        store.positions.recover(caller, "bb", "restarted", 0, TOPICS, {TP: None, OTHER: None})
        operator = OperatorVerbs.of_group(world.client, world.group, lambda: world.now)
        world.now += 2 * SESSION
        operator.check()
        operator.reset("cc", 4, 0, "by hand", store.positions.status().topics, {TP: 3, OTHER: None})
        assert store.positions.reset_epoch() == 4
        assert operator.now_ms() == world.now

    def _without_order(self, world: World) -> None:
        joining = Joining({"host": "h"}, ordering="none", next_nonce="dd")
        answer = world.store.members.join(Caller("m-4", "i4"), "", joining)
        caller = Caller("m-4", "i4", answer.seen.nonce)
        handed = world.store.positions.hand_out(caller, {TP: 9}, 5, 5).value
        assert (handed.epoch, handed.slices) == ("dd.1", {TP: (OffsetRange(3, 8),)})
        assert world.store.members.leave(caller, {TP: ()}) == 0

    def _imported(self, world: World) -> None:
        verbs = OperatorVerbs.of_group(world.client, f"{world.group}-imported", lambda: world.now)
        places = {TP: (5, (OffsetRange(5, 7), OffsetRange(9, 10))), OTHER: (3, ())}
        topics = {"orders": KnownTopic("id-1", 2)}
        assert verbs.found("aa", "of another consumer", topics, places)
        assert not verbs.found("bb", "once more", topics, places)
        keys = GroupKeys(f"{world.group}-imported")
        assert world.redis.hgetall(keys.segments(TP)) == {str(WHOLE): "7"}
        assert world.redis.hgetall(keys.ics(TP)) == {str(WHOLE): "9-9"}
        assert world.redis.hgetall(keys.stable("orders")) == {"0": "7", "1": "3"}
        assert [name for name in verbs.names() if world.redis.pttl(name) == -1] == []
        verbs.delete()

    def _seen_and_deleted(self, world: World) -> None:
        assert world.group in list_groups(world.client)
        assert read_group(world.client, world.group).stable[TP] == 3
        events = last_events(world.client, world.group, 1_000)
        assert {e.kind for e in events} == EVENTS
        world.store.reports.event("fence", "the last")
        assert [e.why for e in next(follow(world.client, world.group, events[-1].id))] == ["the last"]
        copy = copies.backup(world.client, world.group)
        copies.restore(world.client, copy)
        restored = copies.backup(world.client, world.group).keys
        assert {**restored, "meta": {}} == {**copy.keys, "meta": {}}
        operator = OperatorVerbs.of_group(world.client, world.group)
        assert operator.delete() > 5
        assert operator.names() == []
        try:
            world.store.positions.status()
        except verdicts.Absent:
            return
        raise AssertionError(f"{GroupKeys(world.group).meta} is still there")
