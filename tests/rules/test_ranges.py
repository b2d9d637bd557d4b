"""The plane of offsets and key hashes, and how it is cut (docs/protocol.md#ranges)."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.progress.ownership import Fact, completed
from coordinator.values.key_hash import cut_bound, cuts, hash_record
from coordinator.values.ranges import HASH_MAX, OFFSET_MAX, WHOLE
from spark_coop_source.decode.byte_column import ByteColumn
from spark_coop_source.select.hashing import hash_records
from store_world import BIG, TP, World, lane, offset

ON_EACH_SERVER = True

records = st.lists(st.tuples(st.none() | st.binary(max_size=70), st.integers(0, OFFSET_MAX)), max_size=40)


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


@given(records)
def test_key_hash__every_record_hashes_as_defined(records: list[tuple[bytes | None, int]]) -> None:
    """Rule: key-hash. The hash of a key is 63 bits of murmur3, as below."""
    keys = [key for key, _ in records]
    offsets = np.array([offset for _, offset in records], np.int64)
    hashes = hash_records(ByteColumn.of(keys), offsets)
    assert hashes.dtype == np.int64
    assert hashes.tolist() == [hash_record(key, offset) for key, offset in records]


def test_exact_tiling__equal_neighbours_become_one_segment_again(world: World) -> None:
    """Rule: exact-tiling. The segments of a partition tile its hash space; so do the ranges of an assignment."""
    me = world.owner()
    for n in (2, 7, 3):
        end = offset(*(lane("aa.1", 0, 10 * n, h) for h in cuts(n)))
        world.store.positions.commit(me, end, completed(end))
    assert world.positions() == {str(WHOLE): "70"}


def test_cut_at_ownership__equal_neighbours_of_two_owners_stay_two_segments(
    world: World,
) -> None:
    """Rule: cut-at-ownership. An acquisition cuts segments and individual commits at both ends of the range."""
    world.found()
    lower, upper = cuts(2)
    for caller, hashes, epoch in ((world.join(), lower, "aa.1"), (world.join("m-2", "i2"), upper, "aa.2")):
        world.store.positions.acquire(caller, {TP: (hashes,)})
        end = offset(lane(epoch, 0, 10, hashes))
        world.store.positions.commit(caller, end, completed(end))
    assert world.positions() == {str(lower): "10", str(upper): "10"}


def test_numbers_as_text__positions_too_large_for_a_double_are_compared_exactly(world: World) -> None:
    """Rule: numbers-as-text. Scripts compare offsets and hashes as text."""
    me = world.owner(p0=BIG - 1)
    end = offset(lane("aa.1", BIG - 1, BIG))
    world.store.positions.commit(me, end, completed(end))
    assert world.store.positions.stable(["orders"])[TP] == BIG
    world.store.positions.claim(end, {TP: (Fact(WHOLE, BIG - 1),)})
    assert world.store.positions.stable(["orders"])[TP] == BIG
