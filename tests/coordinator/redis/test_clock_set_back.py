"""A Redis whose clock was ahead, and is set back: nothing that was timed then holds for longer than it may now."""

from collections.abc import Callable

import pytest

from coordinator.progress.ownership import Owned
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.commits import CommitVerbs, Reservation
from coordinator.redis.keys import GroupKeys
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.replies import Caller, Joining
from coordinator.redis.snapshot import read_group
from coordinator.redis.store import Store
from coordinator.values import verdicts
from coordinator.values.ranges import WHOLE, OffsetRange
from store_world import LONGEST, NO_MEMBER, SESSION, TOPICS, TP, WANTED, World, lane, offset

ON_EACH_SERVER = True
AHEAD = 30 * 24 * 3_600_000


def ahead(world: World, step: Callable[[], object]) -> None:
    """Do something while the clock of Redis is a month ahead."""
    world.lapse(AHEAD)
    step()
    world.now -= AHEAD


def recovered(world: World, store: Store) -> None:
    world.restart()
    ahead(world, lambda: store.positions.recover(NO_MEMBER, "bb", "restarted", 0, TOPICS, {TP: None}))


def test_recovering_to_working_takes_one_session_though_the_clock_was_ahead(world: World) -> None:
    world.found(p0=5)
    recovered(world, world.store)
    me = world.join(before="aa")
    with pytest.raises(verdicts.Recovering):
        world.store.positions.acquire(me, WANTED)
    world.lapse(SESSION)
    assert world.store.positions.acquire(me, WANTED).value.ownership == {TP: (Owned(WHOLE, "bb.1"),)}
    assert world.events("clock") == ["the recovery was cut: the clock of Redis was ahead"]


def test_a_member_with_a_short_session_does_not_cut_a_recovery_that_others_need(world: World) -> None:
    world.found(p0=5)
    recovered(world, world.store)
    short, me = world.store_with(session_ms=SESSION // 10), world.join(before="aa")
    for passed in (0, SESSION - 1):
        world.lapse(passed)
        with pytest.raises(verdicts.Recovering):
            short.positions.acquire(me, WANTED)
    world.lapse(1)
    short.positions.acquire(me, WANTED)


def test_a_member_that_joins_with_a_short_session_does_not_cut_the_lease_of_another(world: World) -> None:
    world.found(p0=5)
    world.store.positions.acquire(world.join(), WANTED)
    short = world.store_with(session_ms=SESSION // 10)
    joined = short.members.join(Caller("m-2", "i2"), "", Joining({}))
    other = Caller("m-2", "i2", joined.seen.nonce, str(joined.seen.seq))
    leases = GroupKeys(world.group).leases
    before = world.redis.zscore(leases, "m-1")
    assert short.positions.acquire(other, WANTED).value.ownership == {TP: ()}
    assert world.redis.zscore(leases, "m-1") == before


def test_a_recovery_of_another_version_which_kept_no_session_is_cut_too(world: World) -> None:
    world.found(p0=5)
    world.redis.hset(GroupKeys(world.group).meta, "recovering_until", str(world.now + AHEAD))
    with pytest.raises(verdicts.Recovering):
        world.store.positions.acquire(world.join(before="99"), WANTED)
    world.lapse(SESSION)
    world.store.positions.acquire(world.join(), WANTED)


def test_a_clock_that_is_set_back_a_little_is_not_worth_an_event(world: World) -> None:
    world.found(p0=5)
    me = world.join()
    world.now -= 20
    world.store.members.look(me)
    assert world.events("clock") == []


def test_a_living_member_keeps_its_ranges_when_the_clock_is_set_back(world: World) -> None:
    world.found(p0=5)
    ahead(world, lambda: world.store.positions.acquire(world.join(), WANTED))
    other = world.join("m-2", "i2")
    for _ in range(5):
        world.store.members.heartbeat(world.caller("m-1"))
        assert world.store.positions.acquire(other, WANTED).value.ownership == {TP: ()}
        world.lapse(SESSION)


def test_hung_ranges_are_takeable_after_the_longest_batch_by_the_corrected_clock(world: World) -> None:
    world.found(p0=5)
    hangs, me = world.join("hangs"), world.join()
    world.store.positions.acquire(hangs, WANTED)
    ahead(world, lambda: world.store.positions.authorize(hangs, offset(lane("aa.1", 5, 10))))
    for _ in range(LONGEST // SESSION):
        world.store.members.heartbeat(hangs, reading=True)
        assert world.store.positions.acquire(me, WANTED).value.ownership == {TP: ()}
        world.lapse(SESSION)
    world.store.members.heartbeat(hangs, reading=True)
    world.lapse(1)
    assert world.store.positions.acquire(me, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.2"),)}


def test_the_turn_of_a_member_that_died_before_it_computed_passes_to_the_next(world: World) -> None:
    world.found(p0=5)
    two = world.join("m-2", "i2")
    world.join()
    ahead(world, lambda: [world.store.members.heartbeat(world.caller(m)) for m in ("m-1", "m-2")])
    ahead(world, lambda: world.store.members.look(world.caller("m-1")))
    world.store.members.heartbeat(world.caller("m-1"))
    assert world.store.members.look(two).value.occasion, "nobody computes an assignment for a month"


def test_another_member_of_an_application_starts_a_session_after_the_clock_is_right(world: World) -> None:
    world.found(p0=5)
    ahead(world, lambda: world.join("dead", application="app"))
    with pytest.raises(verdicts.Busy) as busy:
        world.join(application="app")
    assert busy.value.lease_end_ms == world.now + SESSION
    world.lapse(SESSION + 1)
    world.join(application="app")


def test_an_operator_waits_for_one_session(world: World) -> None:
    world.found(p0=5)
    ahead(world, lambda: world.join("dead"))
    operator = OperatorVerbs.of_group(world.client, world.group, lambda: world.now)
    known = world.store.positions.status().topics
    with pytest.raises(verdicts.Busy):
        operator.reset("cc", 9, 0, "why", known, {TP: 3})
    world.lapse(SESSION + 1)
    operator.reset("cc", 9, 0, "why", known, {TP: 3})


def reserving(world: World) -> Callable[[str, OffsetRange, int], str]:
    """Reservations of workers of a member that owns the partition: returns whether their turn has come."""
    world.found(p0=5)
    world.logs_reach()
    world.store.positions.acquire(world.join(), WANTED)
    times = {"session_ms": SESSION, "longest_ms": LONGEST, "retention_ms": 1}
    commits = CommitVerbs(ScriptCalls(world.client, world.group, **times, now=lambda: world.now))
    standing = commits.standing(world.caller("m-1"))

    def reserve(worker: str, offsets: OffsetRange, lease_ms: int) -> str:
        return commits.reserve(standing, TP, Reservation(worker, offsets, standing.lanes[TP]), "held", lease_ms).word

    return reserve


def test_offsets_that_a_dead_worker_reserved_are_free_a_lease_after_the_clock_is_right(world: World) -> None:
    reserve = reserving(world)
    ahead(world, lambda: reserve("dead", OffsetRange(5, 8), SESSION))
    assert reserve("w", OffsetRange(8, 9), SESSION) == "WAIT"
    world.lapse(SESSION + 1)
    assert reserve("w", OffsetRange(8, 9), SESSION) == "ALONE"


def test_a_reader_of_the_group_sees_the_times_in_force(world: World) -> None:
    world.now = world.store.positions.now_ms()
    world.found(p0=5)
    recovered(world, world.store)
    ahead(world, lambda: world.join("dead", before="aa"))
    state = read_group(world.client, world.group)
    assert int(state.meta["recovering_until"]) == state.now_ms + SESSION
    assert state.leases_ms == {"dead": state.now_ms + SESSION}


def test_the_reservation_of_a_worker_with_a_longer_lease_is_not_cut_by_another(world: World) -> None:
    reserve = reserving(world)
    assert reserve("patient", OffsetRange(5, 8), 100 * SESSION) == "TURN"
    assert reserve("w", OffsetRange(8, 9), SESSION) == "WAIT"
    world.lapse(10 * SESSION)
    assert reserve("w", OffsetRange(8, 9), SESSION) == "WAIT"
    assert world.events("clock") == []


def test_an_operator_cuts_no_lease_of_a_group_whose_session_is_unknown(world: World) -> None:
    world.found(p0=5)
    world.join("m-1")
    keys = GroupKeys(world.group)
    world.redis.hdel(keys.meta, "session_ms", "longest_ms")
    before = world.redis.zscore(keys.leases, "m-1")
    with pytest.raises(verdicts.Busy):
        OperatorVerbs.of_group(world.client, world.group, now=lambda: world.now).deletable()
    assert world.redis.zscore(keys.leases, "m-1") == before
