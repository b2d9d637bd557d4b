"""The plane of offsets and key hashes, and how it is cut (docs/protocol.md#ranges)."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commit_apis import api, ranges, state
from coordinator.commits.commit_api import Committed
from coordinator.plan.cost.quotas import Budget
from coordinator.plan.cost.steering import Steering
from coordinator.plan.packing import pack
from coordinator.plan.planning import Cutting, OwnedRange, plan
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import Lane
from coordinator.values.key_hash import cut_bound, cuts, hash_record
from coordinator.values.ranges import HASH_MAX, OFFSET_MAX, WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.decode.byte_column import ByteColumn
from spark_coop_source.select.hashing import hash_records
from store_world import BIG, LOWER, SESSION, TP, UPPER, World, lane, offset
from written_worlds import Hands

ON_EACH_SERVER = True
records = st.lists(st.tuples(st.none() | st.binary(max_size=70), st.integers(0, OFFSET_MAX)), max_size=40)


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
JOINED = ("clicks", "orders")


@pytest.mark.parametrize(
    ("stable", "ics", "commit", "then_stable", "then_ics"),
    [
        pytest.param(43, "45-47 50-50", "48-49", 43, "45-50", id="a commit between two ICs joins them"),
        pytest.param(43, "45-47 50-50", "43-44", 48, "50-50", id="a commit in the gap moves stable over the IC"),
        pytest.param(41, "43-45 48-49", "41-42 46-47 50-50", 51, "", id="a gap amended leaves no IC"),
        pytest.param(43, "45-47", "40-43", 44, "45-47", id="a commit that straddles the stable offset is trimmed"),
        pytest.param(43, "", "60-60 45-46 50-51", 43, "45-46 50-51 60-60", id="commits above a gap wait as ICs"),
        pytest.param(43, "45-47", "43-60", 61, "", id="a commit over everything leaves no IC"),
        pytest.param(BIG, "", f"{BIG + 2}-{BIG + 2}", BIG, f"{BIG + 2}-{BIG + 2}", id="beyond 2^53 offsets stay exact"),
    ],
)
def test_half_open_offsets__the_worked_examples_of_the_draft_kip(
    world: World, stable: int, ics: str, commit: str, then_stable: int, then_ics: str
) -> None:
    """Rule: half-open-offsets. A stored offset is the next one to read, and offset ranges exclude their end."""
    answer = api(world, stable, ics).commit(TP, ranges(commit))
    assert answer == Committed(then_stable, len(then_ics.split()), 0, ())
    assert state(world) == ({str(WHOLE): str(then_stable)}, {str(WHOLE): then_ics} if then_ics else {})
    assert world.store.positions.stable(["orders"])[TP] == then_stable


@given(records)
def test_key_hash__every_record_hashes_as_defined(records: list[tuple[bytes | None, int]]) -> None:
    """Rule: key-hash. The hash of a key is 63 bits of murmur3, as below."""
    keys = [key for key, _ in records]
    offsets = np.array([offset for _, offset in records], np.int64)
    hashes = hash_records(ByteColumn.of(keys), offsets)
    assert hashes.dtype == np.int64
    assert hashes.tolist() == [hash_record(key, offset) for key, offset in records]


@pytest.mark.parametrize("n", [1, 2, 3, 7, 1_000])
def test_even_cuts__they_tile_the_hash_space(n: int) -> None:
    """Rule: even-cuts. Cut i of n lies at i  263 // n."""
    pieces = cuts(n)
    assert pieces[0].lo == 0
    assert pieces[-1].hi == HASH_MAX
    assert all(left.hi + 1 == right.lo for left, right in pairwise(pieces))
    assert [piece.lo for piece in pieces] == [cut_bound(i, n) for i in range(n)]
    sizes = [piece.size for piece in pieces]
    assert max(sizes) - min(sizes) <= 1


def test_exact_tiling__equal_neighbours_become_one_segment_again(world: World) -> None:
    """Rule: exact-tiling. The segments of a partition tile its hash space; so do the ranges of an assignment."""
    me = world.owner()
    for n in (2, 7, 3):
        end = offset(*(lane("aa.1", 0, 10 * n, h) for h in cuts(n)))
        world.commit(me, end)
    assert world.positions() == {str(WHOLE): "70"}


def test_cut_at_ownership__equal_neighbours_of_two_owners_stay_two_segments(
    world: World,
) -> None:
    """Rule: cut-at-ownership. An acquisition cuts segments and individual commits at both ends of the range."""
    world.found()
    for caller, hashes, epoch in ((world.join(), LOWER, "aa.1"), (world.join("m-2", "i2"), UPPER, "aa.2")):
        world.store.positions.acquire(caller, {TP: (hashes,)})
        end = offset(lane(epoch, 0, 10, hashes))
        world.commit(caller, end)
    assert world.positions() == {str(LOWER): "10", str(UPPER): "10"}


def test_cut_at_ownership__individual_commits_are_cut_where_ownership_changes(world: World) -> None:
    """An acquisition cuts segments and individual commits at both ends of the range."""
    world.owner({str(WHOLE): "45-47"}, p0=43)
    world.lapse(10 * SESSION)
    other = world.join("m-2", "i2")
    acquired = world.store.positions.acquire(other, {TP: (LOWER,)}).value
    assert world.ics() == {str(LOWER): "45-47", str(UPPER): "45-47"}
    assert [str(r) for s in acquired.progress[TP].segments for r in s.ics] == ["45-47"]
    assert world.commit(other, offset(Lane(LOWER, "aa.2", 43, (OffsetRange(43, 45),)))) == {}
    assert (world.positions(), world.ics()) == ({str(LOWER): "48", str(UPPER): "43"}, {str(UPPER): "45-47"})


def test_cut_by_hash__tasks_share_a_partition_by_hashes_and_never_by_offsets() -> None:
    """Rule: cut-by-hash. The planner cuts lanes by hash, never by offset."""
    cutting = Cutting(2, lanes=3)
    end = offset(*plan({TP: (OwnedRange(WHOLE, 0, "aa.1"),)}, {TP: 10}, cutting)[TP])
    tasks = Steering(Hands(), cutting, Budget(10_000, 2)).pack(end, end)
    assert sorted((s.hashes, str(s.offsets)) for task in tasks for s in task) == [(h, "0-9") for h in cuts(3)]
    assert sorted(map(len, tasks)) == [1, 2]


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
    """Rule: joined-topics. The topics of the option `copartition` are joined."""
    check_packed(slices, tasks, limit, seed, lambda s: s.partition, joined=JOINED)


@given(slices=slices_anywhere, tasks=st.integers(1, 8))
def test_joined_topics__those_that_are_not_read_change_no_packing(slices: list[Slice], tasks: int) -> None:
    assert pack(slices, tasks=tasks, joined=("returns", "sales")) == pack(slices, tasks=tasks)
