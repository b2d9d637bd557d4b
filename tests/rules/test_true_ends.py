"""Tasks that end before the plan does: their true ends are sealed (docs/protocol.md#true-ends)."""

from dataclasses import replace

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.member.decision import Return
from coordinator.member.inbox import Inbox, Reach
from coordinator.member.planning import plan_batch
from coordinator.member.requests import ReadReach
from coordinator.member.state import Reading
from coordinator.plan.planning import OwnedRange
from coordinator.progress.ends import Ends
from coordinator.progress.ownership import Owned
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Authorized, Sealed
from coordinator.values import verdicts
from coordinator.values.hash_map import HashMap
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import TopicPartition
from group_services import LONG_MS, UNLIMITED, Group, slices_read, subscribed
from states import EPOCH, LEFT, RIGHT, call, decided, end_of, owns
from store_world import TP, WANTED, World, lane, offset

ON_EACH_SERVER = True
EARLY = replace(offset(lane("aa.1", 0, 10)), early=1)
TO_7: Ends = {TP: HashMap.of(WHOLE, 7)}
HALVES = {TP: tuple(Lane(h, EPOCH, 10, (OffsetRange(10, 20),)) for h in (LEFT, RIGHT))}


def test_seal_before_sink__a_seal_that_comes_after_the_next_plan_is_refused(world: World) -> None:
    """Rule: seal-before-sink.

    The last task of a batch ends only after Redis has stored the true ends of all tasks, the seal.
    """
    me = world.owner()
    world.store.positions.authorize(me, EARLY)
    world.store.positions.seal(me, EARLY.digest, {})
    following = replace(EARLY, early=2)
    assert world.store.positions.authorize(me, following).value.ends is None
    assert not world.store.positions.seal(me, EARLY.digest, TO_7).value
    assert world.store.positions.seal_of("m-1", following.digest) == Sealed(None)
    assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed(unread=True)


def test_seal_before_sink__another_life_seals_no_batch(world: World) -> None:
    old = world.owner()
    world.store.positions.authorize(old, EARLY)
    world.join("m-1", "i2")
    with pytest.raises(verdicts.Fenced):
        world.store.positions.seal(old, EARLY.digest, TO_7)


def test_seal_before_sink__a_seal_is_not_one_of_a_topic_with_a_longer_name(world: World) -> None:
    me = world.owner()
    world.store.positions.authorize(me, EARLY, as_planned=True)
    ends = {TopicPartition(topic, 0): HashMap.of(WHOLE, 7) for topic in ("orders", "rs")}
    for tp, of_tp in ends.items():
        world.store.positions.seal(me, EARLY.digest, {tp: of_tp})
    assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed(ends)


def test_seal_as_planned__not_if_an_earlier_life_authorised_it_unsealed(world: World) -> None:
    """Rule: seal-as-planned. A task that cannot report reads to its planned ends, which are then the seal.

    Its plan may be long, because its tasks could end early. Each later life begins it anew.
    """
    me = world.owner()
    assert not world.store.positions.authorize(me, EARLY).value.as_planned
    later = world.join("m-1", "i2")
    for _ in range(2):  # the first answer may be lost
        answer = world.store.positions.authorize(later, EARLY, replayed=True, as_planned=True).value
        assert (answer.ends, answer.as_planned) == (None, False)


def test_seal_as_planned__each_early_end_is_added_once(world: World) -> None:
    world.found()
    me, (lower, upper) = world.join(), cuts(2)
    world.store.positions.acquire(me, WANTED)
    for _ in range(2):  # the first answer may be lost
        assert world.store.positions.authorize(me, EARLY, as_planned=True).value.as_planned
    assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed({})
    for hashes, end in ((upper, 7), (lower, 5), (upper, 7)):
        assert world.store.positions.seal(me, EARLY.digest, {TP: HashMap.of(hashes, end)}).value
    later = world.join("m-1", "i2")
    ends = world.store.positions.authorize(later, EARLY, replayed=True, as_planned=True).value.ends
    assert ends == {TP: ((lower, 5), (upper, 7))}


def test_replay_fixed__each_later_life_gets_the_sealed_ends(world: World) -> None:
    """Rule: replay-fixed. A replay of a sealed batch reads exactly to the sealed ends."""
    me = world.owner()
    owned = {TP: (Owned(WHOLE, "aa.1"),)}
    assert world.store.positions.authorize(me, EARLY).value == Authorized(owned)
    assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed(None)
    assert world.store.positions.seal(me, EARLY.digest, TO_7).value
    for life in ("i2", "i3"):
        me = world.join("m-1", life)
        assert world.store.positions.authorize(me, EARLY, replayed=True).value == Authorized(owned, TO_7)
        assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed(TO_7)


def test_replay_acknowledged__a_replay_on_request_leaves_out_what_is_done(members: Group, tp: TopicPartition) -> None:
    """Rule: replay-acknowledged.

    With `replayAcknowledged=false`, a replay leaves out the offsets that are done in Redis.
    """
    settings = GroupSettings(members.name, capacity=2, session_ms=LONG_MS, replay_acknowledged=False)
    _, end = members.begun(subscribed(tp), settings=settings)
    members.redis.hset(GroupKeys(members.name).ics(tp), str(WHOLE), "2-3")
    again = members.service(subscribed(tp), settings=settings)
    assert {str(s.offsets) for s in slices_read(again, end)} == {"0-1", "4-4"}
    members.redis.delete(GroupKeys(members.name).ics(tp))
    assert {str(s.offsets) for s in slices_read(again, end)} == {"0-1", "4-4"}, "later calls have the same answer"
    assert again.next_offset(end, UNLIMITED) is None
    assert members.state.stable == {tp: 5}, "the user has finished all that was planned"


def test_first_end_wins__it_counts_for_all_attempts_of_the_task() -> None:
    """Rule: first-end-wins. Of several attempts of a task, the first reported end counts."""
    end, inbox = end_of(10, 20, early=1), Inbox()
    inbox.begin(end, [[Slice(TP, WHOLE, OffsetRange(10, 20))]])
    to_15, to_12 = ({TP: HashMap.of(WHOLE, until)} for until in (15, 12))
    assert inbox.agreed(end.digest, 0) is None
    for attempt in (to_15, to_12):
        assert inbox.agree(end.digest, 0, attempt).agreed == to_15
    assert inbox.agreed(end.digest, 0) == to_15


def test_unknown_is_beginning__after_the_entry_of_its_member_was_lost(world: World) -> None:
    """Rule: unknown-is-beginning.

    If Redis lost the entry of a member, nobody knows whether an earlier life sealed the batch.
    """
    me = world.owner()
    world.store.positions.authorize(me, EARLY)
    world.store.positions.seal(me, EARLY.digest, TO_7)
    world.redis.delete(GroupKeys(world.group).member("m-1"))
    for life in ("i2", "i3"):
        me = world.join("m-1", life)
        assert world.store.positions.authorize(me, EARLY, replayed=True).value.unknown
        assert world.store.positions.seal_of("m-1", EARLY.digest) == Sealed(None)


@pytest.mark.parametrize(
    ("start", "early"),
    [
        pytest.param(end_of(0, 10, early=1), 1, id="other offsets"),
        pytest.param(end_of(10, 20, early=1), 2, id="the last batch read nothing"),
        pytest.param(end_of(10, 20, early=2), 3, id="nor did the batch before it"),
        pytest.param(end_of(10, 20, early=1, leader_epochs={TP: 3}), 2, id="nothing, and the leader has changed"),
        pytest.param(end_of(10, 20, early=1, lanes=HALVES), 2, id="nothing, and lanes were cut elsewhere"),
    ],
)
def test_equal_plans__the_next_offset_differs_from_the_last_one(start: StreamOffset, early: int) -> None:
    """Rule: equal-plans. If a batch read nothing, the next plan may have the same lanes and offsets."""
    reach = (ReadReach(), Reach.UNKNOWN)
    state = owns(reading=Reading(work={TP: (OwnedRange(WHOLE, 10, EPOCH),)}, until={TP: 20}))
    decision = decided(plan_batch, state, call(start, early_ends=True), reach)
    assert decision.outcome == Return(end_of(10, 20, early=early))
