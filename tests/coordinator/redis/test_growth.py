"""Partition growth in Redis: each growth and its ends are recorded once, with positions of all owners."""

from dataclasses import replace

import pytest

from coordinator.progress.growth import Growth
from coordinator.redis.keys import GroupKeys
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Topic, TopicPartition
from coordinator.values.verdicts import Absent
from store_world import LOWER, NO_MEMBER, OTHER, TP, UPPER, World

ON_EACH_SERVER = True

THIRD = TopicPartition("orders", 2)
GRACE = 600_000
NOT_ALL = "not a multiple, so keys that moved between older partitions may be out of order"


def topic_of(partitions: int, topic_id: str = "id-1") -> dict[str, Topic]:
    return {"orders": Topic("orders", topic_id, tuple(range(partitions)))}


def place(world: World, partitions: int, *tps: TopicPartition, grace_ms: int = GRACE) -> None:
    world.store.positions.create("", topic_of(partitions), dict.fromkeys(tps, 0), grace_ms=grace_ms)


def grown(world: World, old: int, new: int, grace_ms: int = GRACE, *, late: bool = True) -> Growth:
    return Growth("orders", "id-1", old, new, world.now, world.now + grace_ms, late=late)


@pytest.fixture
def founded(world: World) -> World:
    """A group on a topic of one partition."""
    world.store.positions.create("aa", topic_of(1), {TP: 0}, grace_ms=GRACE)
    return world


def test_a_new_group_has_seen_no_growth(founded: World) -> None:
    assert founded.store.positions.growths() == ()
    assert founded.store.members.partition_counts() == {"orders": 1}


def test_a_growth_is_recorded_when_it_is_first_seen_and_no_more(founded: World) -> None:
    place(founded, 3, OTHER, THIRD)
    first = grown(founded, 1, 3)
    founded.lapse(5_000)
    place(founded, 3, OTHER, THIRD)
    place(founded, 1, TP)  # a member with an older view
    assert founded.store.positions.growths() == (first,)
    founded.lapse(5_000)
    place(founded, 6, TopicPartition("orders", 3))
    assert founded.store.positions.growths() == (first, grown(founded, 3, 6))


@pytest.mark.parametrize(
    ("ago_ms", "late"),
    [(None, True), (0, False), (15_000, False), (15_001, True), (-1, True)],
    ids=["never", "now", "a little ago", "too long ago", "the clock was set back"],
)
@pytest.mark.parametrize(
    ("old", "new", "prompt", "seen_late"),
    [
        pytest.param(1, 2, "key order across it is kept", "key order across it is kept", id="no number in between"),
        pytest.param(
            1,
            4,
            "key order across it is kept if it did not grow twice within seconds",
            "seen late, so some keys may be out of order unless it was one step, or steps to multiples",
            id="a multiple",
        ),
        pytest.param(2, 5, NOT_ALL, NOT_ALL, id="no multiple"),
    ],
)
def test_a_growth_is_late_if_no_member_looked_shortly_before(
    world: World, ago_ms: int | None, late: bool, old: int, new: int, prompt: str, seen_late: str
) -> None:
    tps = [TopicPartition("orders", p) for p in range(new)]
    world.store.positions.create("aa", topic_of(old), dict.fromkeys(tps[:old], 0), grace_ms=GRACE)
    if ago_ms is not None:
        world.now -= ago_ms
        world.store.positions.report_ends({TP: 5}, {})
        world.lapse(ago_ms)
    place(world, new, *tps)
    assert world.store.positions.growths() == (grown(world, old, new, late=late),)
    assert world.events("growth") == [f"orders: {old} -> {new} partitions; {seen_late if late else prompt}"]
    assert str(world.store.positions.growths()[0]).endswith(seen_late if late else prompt)


def test_a_joined_topic_may_have_grown_in_steps_while_it_waited_for_the_others(world: World) -> None:
    """Members look at it all the time (rule: joined-topics)."""
    tps = [TopicPartition("orders", p) for p in range(4)]
    world.store.positions.create("aa", topic_of(1), {TP: 0}, grace_ms=GRACE)
    world.store.positions.report_ends({TP: 5}, {})
    world.store.positions.create("", topic_of(4), dict.fromkeys(tps, 0), grace_ms=GRACE, joined=("orders",))
    assert world.store.positions.growths() == (grown(world, 1, 4, late=True),)


def test_log_ends_that_were_stored_long_after_their_look_are_as_old_as_the_look(world: World) -> None:
    """Redis was away meanwhile: the topic may have grown in several steps since the look."""
    tps = [TopicPartition("orders", p) for p in range(4)]
    world.store.positions.create("aa", topic_of(2), dict.fromkeys(tps[:2], 0), grace_ms=GRACE)
    world.store.positions.report_ends({TP: 5}, {}, world.now - 50_000)
    place(world, 4, *tps)
    assert world.store.positions.growths() == (grown(world, 2, 4, late=True),)


def test_nothing_is_mended_where_partitions_are_new(world: World) -> None:
    """The event `mend` says that somebody took positions away, so an operator looks for them."""
    world.store.positions.create("aa", topic_of(3), dict.fromkeys((TP, OTHER, THIRD), 0), grace_ms=GRACE)
    more = [TopicPartition("orders", n) for n in (3, 4, 5)]
    place(world, 6, *more)
    found = "first positions of a new group: orders-0 at 0, orders-1 at 0, orders-2 at 0"
    assert (world.events("found"), world.events("mend")) == ([found], [])
    world.redis.delete(GroupKeys(world.group).segments(more[0]))
    place(world, 6, *more)
    assert world.events("mend") == ["orders-3 had no positions: it begins at 0"]


def test_the_event_of_a_new_group_names_ten_positions(world: World) -> None:
    places = {TopicPartition("orders", n): 7 for n in range(11)}
    world.store.positions.create("aa", topic_of(11), places, grace_ms=GRACE)
    named = ", ".join(f"orders-{n} at 7" for n in range(10))
    assert world.events("found") == [f"first positions of a new group: {named}, ..."]


def test_the_grace_is_that_of_the_member_that_saw_it_first(founded: World) -> None:
    place(founded, 2, OTHER, grace_ms=0)
    place(founded, 2, OTHER, grace_ms=GRACE)
    assert founded.store.positions.growths() == (grown(founded, 1, 2, 0),)
    assert not founded.store.positions.growths()[0].kept


def assigned(world: World, nonce: str, total: int, *tps: TopicPartition) -> None:
    """A member with `assign` places its partitions of a topic that has more."""
    topics = {"orders": Topic("orders", "id-1", tuple(tp.partition for tp in tps), total)}
    world.store.positions.create(nonce, topics, dict.fromkeys(tps, 0), grace_ms=GRACE)


@pytest.mark.parametrize("reads", [(TP,), (OTHER,), (TP, OTHER)], ids=["older", "newer", "all"])
def test_a_member_with_assign_records_a_growth(founded: World, reads: tuple[TopicPartition, ...]) -> None:
    assigned(founded, "", 2, *reads)
    seen = grown(founded, 1, 2)
    assert founded.store.positions.growths() == (seen,)
    founded.lapse(5_000)
    place(founded, 2, OTHER)
    assert founded.store.positions.growths() == (seen,)


def test_partitions_that_nobody_assigned_before_are_no_growth(world: World) -> None:
    assigned(world, "aa", 3, TP)
    assert world.store.members.partition_counts() == {"orders": 1}, "nobody is assigned the others"
    assigned(world, "", 3, THIRD)
    place(world, 3, TP, OTHER, THIRD)
    assert world.store.positions.growths() == ()
    assert world.events("mend") == []
    assigned(world, "", 4, THIRD)
    assert world.store.positions.growths() == (grown(world, 3, 4),)


def test_a_group_that_does_not_know_how_many_partitions_it_has_seen(founded: World) -> None:
    """As after a recovery: only a member that reads all partitions tells a growth from new assignments."""
    founded.redis.hdel(GroupKeys(founded.group).meta, "partitions orders")
    assigned(founded, "", 3, OTHER)
    assert founded.store.positions.growths() == ()
    founded.redis.hdel(GroupKeys(founded.group).meta, "partitions orders")
    place(founded, 3, THIRD)
    assert founded.store.positions.growths() == (grown(founded, 2, 3),)


def test_a_topic_without_a_leader_at_the_founding_may_have_grown_before_its_first_position(world: World) -> None:
    silent = {"payments": Topic("payments", "id-2", (0,))}
    world.store.positions.create("aa", topic_of(1) | silent, {TP: 0}, grace_ms=GRACE)
    assert world.store.members.partition_counts() == {"orders": 1}, "nobody is assigned what has no position"
    assert world.store.members.partitions_seen() == {"orders": 1, "payments": 1}
    three = {"payments": Topic("payments", "id-2", (0, 1, 2))}
    world.store.positions.create("", topic_of(1) | three, {}, grace_ms=GRACE)
    world.store.positions.create("", topic_of(1) | three, {TopicPartition("payments", 1): 0}, grace_ms=GRACE)
    payments = Growth("payments", "id-2", 1, 3, world.now, world.now + GRACE, late=True)
    assert world.store.positions.growths() == (payments,)


def test_a_member_with_an_older_view_records_nothing(founded: World) -> None:
    place(founded, 3, OTHER, THIRD)
    assigned(founded, "", 2, OTHER)
    place(founded, 3, OTHER, THIRD)
    assert founded.store.positions.growths() == (grown(founded, 1, 3),)


def test_a_topic_that_was_created_again_did_not_grow(founded: World) -> None:
    founded.store.positions.create("", topic_of(2, "id-2"), {OTHER: 0}, grace_ms=GRACE)
    assert founded.store.positions.growths() == ()


def test_the_ends_of_older_partitions_are_recorded_once(founded: World) -> None:
    place(founded, 2, OTHER)
    (seen,) = founded.store.positions.growths()
    founded.store.positions.grow([replace(seen, ends=(7,))])
    founded.store.positions.grow([replace(seen, ends=(9,)), seen])
    assert founded.store.positions.growths() == (replace(seen, ends=(7,)),)


def test_the_ends_of_another_growth_of_this_name_change_nothing(founded: World) -> None:
    place(founded, 2, OTHER)
    (seen,) = founded.store.positions.growths()
    founded.store.positions.grow([replace(seen, seen_ms=1, ends=(7,))])
    assert founded.store.positions.growths() == (seen,)


def test_a_lost_growth_is_recorded_again_but_creates_no_group(founded: World) -> None:
    place(founded, 2, OTHER)
    (seen,) = founded.store.positions.growths()
    founded.redis.delete(*founded.redis.scan_iter(f"coop:v1:{{{founded.group.replace(' ', '%20')}}}:*"))
    with pytest.raises(Absent):
        founded.store.positions.grow([seen])
    founded.store.positions.create("bb", topic_of(2), {TP: 0, OTHER: 0}, grace_ms=GRACE)
    founded.store.positions.grow([seen])
    assert founded.store.positions.growths() == (seen,)


def test_a_recovery_records_the_known_growths_in_the_same_step(founded: World) -> None:
    seen = grown(founded, 1, 2)
    founded.restart()
    founded.store.positions.recover(NO_MEMBER, "bb", "restarted", 0, topic_of(2), {TP: None, OTHER: 0}, [seen])
    assert founded.store.positions.growths() == (seen,)
    assert set(founded.positions()) == set(founded.positions(OTHER)) == {str(WHOLE)}


def test_positions_cover_owned_and_unowned_hashes(founded: World) -> None:
    caller = founded.join()
    founded.store.positions.acquire(caller, {TP: (LOWER,)})
    assert founded.store.positions.positions([TP, OTHER]) == {TP: ((LOWER, 0), (UPPER, 0))}, (
        "the other has no positions yet"
    )
    place(founded, 2, OTHER)
    assert founded.store.positions.positions([OTHER]) == {OTHER: ((WHOLE, 0),)}
    assert founded.store.positions.positions([]) == {}


def test_a_look_returns_growths_and_the_time(founded: World) -> None:
    place(founded, 2, OTHER)
    look = founded.store.members.look(founded.join()).value
    assert (look.growths, look.now_ms) == ((grown(founded, 1, 2),), founded.now)
