"""A group that has something of everything that a copy holds and no member any more; a life with any copy."""

from coordinator.errors import CoopKafkaError
from coordinator.progress.leader_epochs import Extent
from coordinator.progress.ownership import completed
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.commits import CommitVerbs
from coordinator.redis.replies import Acquired, Caller
from coordinator.redis.snapshot import read_group
from coordinator.redis.store import store_of
from coordinator.tools.operations import copies
from coordinator.tools.operations.copies import GroupCopy
from coordinator.tools.operations.gaps import gaps
from coordinator.tools.operations.views import view
from coordinator.values.identifiers import POSITION_MAX
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import Topic, TopicPartition
from store_world import LONGEST, LOWER, NO_MEMBER, OTHER, SESSION, TP, UPPER, World, offset

RETURNS = TopicPartition("returns", 0)
KEPT_MS = 3_600_000


def live_richly(world: World) -> None:
    """Two topics, one grew; lanes apart, individual commits, leader epochs, policies; a lane struck, one parked."""
    world.store = store_of(
        ScriptCalls(
            world.client,
            world.group,
            session_ms=SESSION,
            longest_ms=LONGEST,
            retention_ms=KEPT_MS,
            now=lambda: world.now,
        )
    )
    world.found(p0=5, p1=6)
    world.store.positions.create("", {"returns": Topic("returns", "id-2", (0,))}, {RETURNS: 7})
    more = {"orders": Topic("orders", "id-1", (0, 1, 2, 3))}
    world.store.positions.create("", more, {TopicPartition("orders", 2): 0, TopicPartition("orders", 3): 0}, grace_ms=9)
    (growth,) = world.store.positions.growths()
    world.store.positions.grow([growth.__class__.parse(growth.field, f"{growth.value} 20,30")])
    _work(world, world.join())
    _be_lost_over(world, f"orders 1 {LOWER} 6-9;")
    for _ in range(3):
        _be_lost_over(world, f"orders 1 {UPPER} 6-9 one;")
    world.policies.set_policy({"accept.individual.commit": "true", "accept.range.fetch:returns": "false"})
    ends = {TP: 20, OTHER: 30, RETURNS: 40}
    world.store.positions.report_ends(
        ends, {tp: Extent(3, end).text(0, "id-1") for tp, end in ends.items() if tp != RETURNS}
    )
    world.store.members.leave(world.join(incarnation="i-last"), {TP: (), OTHER: ()})


def _work(world: World, me: Caller) -> None:
    wanted = {TP: (LOWER,), OTHER: (LOWER, UPPER)}
    world.store.members.assign(me, world.store.members.look(me).value.occasion, "test 1", {me.member: wanted})
    world.store.positions.acquire(me, wanted)
    end = offset(Lane(LOWER, "aa.1", 5, (OffsetRange(5, 10),)))
    world.store.positions.commit(me, end, completed(end))
    commits = CommitVerbs(
        ScriptCalls(
            world.client,
            world.group,
            session_ms=SESSION,
            longest_ms=LONGEST,
            retention_ms=KEPT_MS,
            now=lambda: world.now,
        )
    )
    standing = commits.standing(me)
    world.logs_reach()
    done = (OffsetRange(12, 14), OffsetRange(16, 17))
    assert commits.commit_ranges(standing, TP, standing.lanes[TP], done, 10).word == "COMMITTED"


def _be_lost_over(world: World, work: str) -> None:
    me = world.join(incarnation=f"i-{world.now}")
    world.store.poison.working(me, work)
    world.now += LONGEST + SESSION
    world.store.poison.strike(me.member)


def live_on(world: World) -> None:
    """The views, then a member's calls: recover, create new positions, join, acquire, commit."""
    store, now = world.store, read_group(world.client, world.group)
    topics = {name: Topic(name, known.id, tuple(range(known.partitions))) for name, known in now.topics.items()}
    (
        view(world.group, now),
        gaps(now),
        store.poison.strikes(),
        store.positions.growths(),
        store.policies.policy(),
        store.positions.extents(list(topics)),
    )
    store.positions.recover(
        NO_MEMBER, "bb", "a copy was loaded", store.positions.reset_epoch(), topics, dict.fromkeys(now.stable)
    )
    world.lapse(SESSION + 2 * int(now.meta.get("session_ms", "0")))  # that of a copy may be any
    me = world.join(incarnation=f"i-{world.now}")
    store.positions.create("", topics, dict.fromkeys(now.stable, 0))
    store.members.look(me)
    got = store.positions.acquire(me, dict.fromkeys(now.stable, (WHOLE,))).value
    _commit_one_more(world, me, got)
    for tp, owned in got.ownership.items():
        commits = CommitVerbs(
            ScriptCalls(
                world.client, world.group, session_ms=SESSION, longest_ms=1, retention_ms=1, now=lambda: world.now
            )
        )
        commits.commit_ranges(commits.standing(me), tp, owned, (OffsetRange(90, 91),), 9)
    store.poison.strike(me.member)
    store.members.leave(me, dict.fromkeys(now.stable, ()))


def _commit_one_more(world: World, me: Caller, got: Acquired) -> None:
    """Commit the next offset of each hash."""
    lanes = {
        tp: tuple(
            Lane(s.hashes, o.epoch, s.position, (OffsetRange(s.position, s.position + 1),))
            for o in owned
            for s in got.progress[tp].within(o.hashes).segments
            if s.position < POSITION_MAX
        )
        for tp, owned in got.ownership.items()
    }
    end = StreamOffset(world.group, me.member, got.reset, got.topic_ids, lanes)
    assert not world.store.positions.commit(me, end, completed(end)).value.refused
    stable = read_group(world.client, world.group).stable
    assert all(stable[tp] > min(lane.position for lane in of_tp) for tp, of_tp in lanes.items() if of_tp)


def live_on_with(world: World, copy: GroupCopy) -> None:
    """Restore a copy, and go on with it; `AssertionError` if nobody can."""
    copies.restore(world.client, copy)
    try:
        live_on(world)
    except CoopKafkaError as error:
        raise AssertionError(f"a copy was taken that nobody can use: {error}") from error
