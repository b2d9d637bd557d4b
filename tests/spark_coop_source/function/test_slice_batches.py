"""A batch is cut into pieces: by slice, or by key, every record once and in offset order."""

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arrow_records import ALL, batch, only, points
from coordinator.progress.slices import Slice
from coordinator.values.key_hash import cuts, hash_record
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import TopicPartition
from equal_hashes import twin
from spark_coop_source.function.slice_batches import SliceTable, by_key, by_slice, tables
from spark_coop_source.select.hash_column import hashes_of

keys = st.lists(st.none() | st.binary(max_size=2), min_size=1, max_size=40)
WHOLE_TABLE = SliceTable([ALL])


def lanes(count: int, *spans: tuple[int, int]) -> list[Slice]:
    return [Slice(TopicPartition("orders", 0), hashes, OffsetRange(*span)) for hashes in cuts(count) for span in spans]


@given(keys, st.integers(0, 30), st.integers(1, 30))
def test_a_batch_is_hashed_by_the_definition(keys: list[bytes | None], start: int, length: int) -> None:
    part = batch(keys, first=7).slice(start, length)
    assert hashes_of(part).tolist() == [hash_record(key, offset) for key, offset in points([part])]


@given(keys)
def test_pieces_by_key_are_all_records_of_a_key_in_offset_order(keys: list[bytes | None]) -> None:
    whole = batch(keys, first=100)
    pieces = list(by_key(whole, WHOLE_TABLE))
    for piece in pieces:
        alone = [(key, offset) for key, offset in points([whole]) if hash_record(key, offset) == piece.key_hash]
        assert points([piece.records]) == alone
        assert {key for key, _ in alone} == {piece.key}
    assert sorted(o for piece in pieces for _, o in points([piece.records])) == [o for _, o in points([whole])]


@given(keys, st.none() | st.integers(1, 12))
def test_the_hashes_with_the_most_records_come_ahead_of_the_others(keys: list[bytes | None], ahead: int | None) -> None:
    """With many keys at once, the longest work begins first; with None, that is the order of all."""
    pieces = list(by_key(batch(keys, first=100), WHOLE_TABLE, ahead=ahead))
    records = Counter(hash_record(key, offset) for key, offset in points([batch(keys, first=100)]))
    most = len(records) if ahead is None else ahead if len(records) > ahead else 0
    first = list(dict.fromkeys(p.key_hash for p in pieces if p.ahead))
    assert [records[h or 0] for h in first] == sorted(records.values(), reverse=True)[:most]
    behind = [p.key_hash or 0 for p in pieces if not p.ahead]
    assert behind == sorted(behind), "by hash, after those that come ahead"
    assert [p.ahead for p in pieces] == sorted((p.ahead for p in pieces), reverse=True)
    assert not {*first} & {*behind}


def test_a_record_without_a_key_is_not_mixed_with_the_key_that_hashes_alike() -> None:
    offset = 5
    twin = offset.to_bytes(8, "big")
    assert hash_record(None, offset) == hash_record(twin, 0)
    pieces = by_key(batch([None, twin], first=offset), WHOLE_TABLE)
    assert {piece.key: points([piece.records]) for piece in pieces} == {None: [(None, 5)], twin: [(twin, 6)]}


def test_keys_that_hash_alike_are_pieces_of_their_own() -> None:
    key = b"customer-0000000000000000-victim"
    other = twin(key)
    assert key != other
    assert hash_record(key, 0) == hash_record(other, 0)
    pieces = by_key(batch([key, other, key, None]), WHOLE_TABLE)
    found = sorted(([points([piece.records]) for piece in pieces]), key=str)
    assert found == sorted([[(key, 0), (key, 2)], [(other, 1)], [(None, 3)]], key=str)


@pytest.mark.parametrize(
    "slices",
    [
        pytest.param(lanes(1, (0, 100)), id="one slice"),
        pytest.param(lanes(5, (0, 100)), id="lanes of one stretch"),
        pytest.param(lanes(3, (0, 10), (20, 30), (30, 100)), id="lanes with stretches"),
        pytest.param([*lanes(2, (0, 10))[:1], *lanes(2, (10, 100))[1:]], id="lanes far apart"),
    ],
)
def test_pieces_by_slice_hold_exactly_the_records_of_each_slice(slices: list[Slice]) -> None:
    whole = batch([b"%d" % (i % 13) for i in range(100)])
    inside = [(s, key, o) for key, o in points([whole]) for s in slices if _in(s, key, o)]
    mask = [any(_in(s, key, o) for s in slices) for key, o in points([whole])]
    pieces = list(by_slice(whole.filter(pa.array(mask)), SliceTable(slices)))
    found = [(piece.of, key, o) for piece in pieces for key, o in points([piece.records])]
    assert sorted(found, key=lambda f: f[2]) == inside
    assert all(piece.key_hash is None for piece in pieces)


def _in(s: Slice, key: bytes | None, offset: int) -> bool:
    return s.offsets.start <= offset < s.offsets.until and hash_record(key, offset) in s.hashes


def test_a_key_is_in_the_slice_that_holds_its_hash() -> None:
    table = SliceTable([Slice(TopicPartition("orders", 0), only(key), OffsetRange(0, 9)) for key in (b"a", b"b")])
    assert {piece.key: piece.of.hashes for piece in by_key(batch([b"a", b"b", b"a"]), table)} == {
        b"a": only(b"a"),
        b"b": only(b"b"),
    }


def test_tables_are_one_a_partition() -> None:
    slices = [Slice(TopicPartition("t", p), hashes, OffsetRange(0, 9)) for p in (1, 0) for hashes in cuts(2)]
    found = tables(slices)
    assert {tp: len(table.slices) for tp, table in found.items()} == {
        TopicPartition("t", 0): 2,
        TopicPartition("t", 1): 2,
    }


def test_a_copied_piece_keeps_nothing_else_alive() -> None:
    whole = batch([b"a"] + [b"b"] * 100, value=b"x" * 1000)
    of_b, of_a = by_key(whole, WHOLE_TABLE)
    assert of_a.copied().records.equals(of_a.records)
    assert of_a.records.get_total_buffer_size() > 100_000, "it lies in the batch"
    assert of_a.copied().records.get_total_buffer_size() < 3_000
    assert str(of_b) == f"orders-0 offsets 1-100 (key hash {of_b.key_hash:016x})"


def test_only_a_batch_from_its_first_record_on_is_whole() -> None:
    """Of the others the function has got records: their key may not end before them."""
    (every,) = by_key(batch([b"a", b"a", b"a"]), SliceTable([ALL]))
    first, rest = every.part(0, 1), every.part(1)
    assert [every.whole, every.copied().whole, first.whole, first.joined([rest]).whole] == [True] * 4
    assert [rest.whole, rest.copied().whole, rest.joined([every]).whole, rest.part(0).whole] == [False] * 4
