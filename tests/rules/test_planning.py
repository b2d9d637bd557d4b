"""What a batch reads: which slices are in which task, and what holds a lane back (docs/protocol.md#ranges)."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.member.decision import Call, Decision, LookAgain, Return, Seen
from coordinator.member.state import State, Turn
from coordinator.plan.event_time_lead import unread, within_lead
from coordinator.plan.packing import pack
from coordinator.progress.slices import Slice
from coordinator.values.ranges import HASH_MAX, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition
from lane_leads import lanes, reads
from states import call
from written_worlds import Script, turns

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


JOINED = ("clicks", "orders")


def hash_ranges() -> st.SearchStrategy[HashRange]:
    return st.tuples(st.integers(0, 16), st.integers(0, 15)).map(
        lambda at: HashRange(at[0] * 2**58, min(HASH_MAX, (at[0] + at[1] + 1) * 2**58 - 1))
    )


slices_anywhere = st.lists(
    st.builds(
        Slice,
        topic_partition=st.builds(TopicPartition, st.sampled_from(["orders", "clicks"]), st.integers(0, 2)),
        hashes=hash_ranges(),
        offsets=st.tuples(st.integers(0, 100), st.integers(1, 100)).map(lambda o: OffsetRange(o[0], o[0] + o[1])),
    ),
    max_size=30,
    unique=True,
)


def check_packed(
    slices: list[Slice], tasks: int, limit: float | None, seed: object, unit: Callable[[Slice], object], **joined: Any
) -> None:
    """Every slice is in one task, no hash of a unit in two, in order of offsets, whatever the order of the slices."""
    packed = pack(slices, tasks=tasks, max_weight=limit, **joined)

    assert sorted(s for task in packed for s in task) == sorted(slices)
    where = {s: i for i, task in enumerate(packed) for s in task}
    assert all(
        where[a] == where[b] for a in slices for b in slices if unit(a) == unit(b) and a.hashes.intersection(b.hashes)
    )
    for task in packed:
        assert list(task) == sorted(task, key=lambda s: (s.topic_partition, s.offsets.start, s.hashes.lo))
    shuffled = list(slices)
    seed.shuffle(shuffled)  # type: ignore[attr-defined]
    assert pack(shuffled, tasks=tasks, max_weight=limit, **joined) == packed


ACQUIRED = Turn(fresh=True, acquired=True)


@given(slices=slices_anywhere, tasks=st.integers(1, 8), limit=st.none() | st.floats(0.1, 200), seed=st.randoms())
def test_one_task_per_hash__no_hash_of_a_partition_is_in_two_tasks(
    slices: list[Slice], tasks: int, limit: float | None, seed: object
) -> None:
    """Rule: one-task-per-hash. All slices of a batch that share a hash are in the same task, in offset order."""
    check_packed(slices, tasks, limit, seed, lambda s: s.topic_partition)


@given(slices=slices_anywhere, tasks=st.integers(1, 8), limit=st.none() | st.floats(0.1, 200), seed=st.randoms())
def test_joined_topics__no_hash_of_them_is_in_two_tasks(
    slices: list[Slice], tasks: int, limit: float | None, seed: object
) -> None:
    """Rule: joined-topics. The topics of the option copartition are joined."""
    check_packed(slices, tasks, limit, seed, lambda s: s.partition, joined=JOINED)


@given(slices=slices_anywhere, tasks=st.integers(1, 8))
def test_joined_topics__those_that_are_not_read_change_no_packing(slices: list[Slice], tasks: int) -> None:
    assert pack(slices, tasks=tasks, joined=("returns", "sales")) == pack(slices, tasks=tasks)


@pytest.mark.parametrize(
    ("positions", "later", "expected"),
    [
        pytest.param((10, 40), 60, [60, 60], id="both read up to the first record that is too late"),
        pytest.param((10, 70), 60, [60, 70], id="a lane that is beyond it waits"),
        pytest.param((10, 70), 100, [100, 100], id="no record is too late"),
        pytest.param((10, 70), 3, [11, 70], id="times jump back: the lane furthest behind reads one offset"),
        pytest.param((100, 70), 80, [100, 80], id="a lane with nothing to read delays no other lane"),
    ],
)
def test_lane_lead__how_far_two_lanes_read(positions: tuple[int, ...], later: int, expected: list[int]) -> None:
    """Rule: lane-lead. maxLaneLead limits how far a lane may be ahead of the oldest unread record, in record time."""
    work, ends = {A: lanes(*positions)}, {A: 100}
    assert reads(within_lead(work, {A: later}, unread(work, ends)), ends) == {A: expected}


@pytest.mark.parametrize(("wait_ms", "fresh"), [(0, True), (250, False)])
def test_fresh_positions__after_a_wait_those_of_before_are_not(wait_ms: int, *, fresh: bool) -> None:
    """Rule: fresh-positions.

    A plan uses positions that the member read in the same call, or that its own commit has just set. Another member
    may assert positions meanwhile.
    """
    looks = iter((LookAgain(wait_ms), Return(None)))

    def step(state: State, seen: Seen, call: Call) -> Decision:
        return Decision(state if state.turn.acquired else replace(state, turn=ACQUIRED), (), next(looks))

    member = turns(Script())
    member.run([step], call())
    assert member.state.turn == replace(ACQUIRED, fresh=fresh)
