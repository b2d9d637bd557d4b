"""The filter of many records at once agrees with the definition, record by record."""

import pickle

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coordinator.values.key_hash import hash_key
from coordinator.values.ranges import HASH_MAX, OFFSET_MAX, WHOLE, HashRange
from coordinator.values.record_filter import EVERYTHING, Key, RecordFilter
from equal_hashes import twin
from filter_oracle import keeps
from spark_coop_source.decode.byte_column import ByteColumn
from spark_coop_source.decode.chunk import Chunk
from spark_coop_source.decode.header_column import HeaderColumn
from spark_coop_source.select.chosen import Hashed
from spark_coop_source.select.filtering import Filtering

FIRST = 7
LONG = bytes(range(32))
TWIN = twin(LONG)

few_keys = st.none() | st.sampled_from([b"", b"a", b"b", b"\x00", b"ab", LONG, TWIN]) | st.binary(max_size=3)
sets = st.frozensets(few_keys, min_size=1, max_size=6)
sizes = st.integers(0, 40)


@st.composite
def ranges(draw: st.DrawFn) -> tuple[HashRange, ...]:
    edges = sorted(draw(st.lists(st.integers(0, HASH_MAX), min_size=2, max_size=8, unique=True)))
    found = tuple(HashRange(lo, hi) for lo, hi in zip(edges[::2], edges[1::2], strict=False))
    return draw(st.sampled_from([found, (WHOLE,), (HashRange(0, edges[0]),), (HashRange(edges[0], HASH_MAX),)]))


filters = st.one_of(  # most filters of all conditions drop everything
    st.builds(RecordFilter, ranges=ranges()),
    st.builds(RecordFilter, allow=sets),
    st.builds(RecordFilter, deny=sets),
    st.builds(RecordFilter, least_bytes=sizes),
    st.builds(RecordFilter, most_bytes=sizes),
    st.builds(RecordFilter, ranges(), st.none() | sets, sets | st.just(frozenset()), st.integers(0, 3), sizes),
)
some_records = st.lists(st.tuples(few_keys, st.none() | st.binary(max_size=40)), max_size=40)


def hashed(records: list[tuple[Key, bytes | None]]) -> Hashed:
    keys, values = ByteColumn.of([k for k, _ in records]), ByteColumn.of([v for _, v in records])
    nothing = np.zeros(len(records), np.int64)
    offsets = np.arange(FIRST, FIRST + len(records))
    headers = HeaderColumn(b"", nothing, nothing, nothing)
    return Hashed(Chunk(keys, values, offsets, nothing, nothing.astype(np.int32), headers))


@given(filters, some_records)
@example(RecordFilter(allow=frozenset([LONG])), [(LONG, b""), (TWIN, b"")])
@example(RecordFilter(deny=frozenset([LONG, TWIN])), [(LONG, b""), (TWIN, b""), (b"a", b"")])
@example(RecordFilter(allow=frozenset([None])), [(None, None), (b"", b"")])
@example(RecordFilter(deny=frozenset([b"a"])), [(None, b"1"), (b"a", b"1"), (b"b", b"1")])
@example(RecordFilter(least_bytes=2, most_bytes=3), [(b"a", b""), (b"a", b"1"), (b"a", b"12"), (b"a", b"123")])
def test_the_filter_keeps_exactly_the_records_of_its_definition(
    of: RecordFilter, records: list[tuple[Key, bytes | None]]
) -> None:
    kept = Filtering(pickle.loads(pickle.dumps(of))).kept(hashed(records))
    assert kept.tolist() == [keeps(of, key, value, FIRST + i) for i, (key, value) in enumerate(records)]


def test_the_rows_to_read_stay_in_their_order_and_dropped_ones_are_counted() -> None:
    filtering = Filtering(RecordFilter(deny=frozenset([b"b"])))
    chosen = filtering.chosen(hashed([(b"a", b""), (b"b", b""), (b"c", b""), (b"b", b"")]), np.array([2, 1, 0]))
    assert (chosen.kept.tolist(), chosen.rows.tolist(), chosen.dropped) == ([True, False, True, False], [2, 0], 1)


def test_two_keys_of_one_hash_are_told_apart_by_comparison() -> None:
    assert hash_key(LONG) == hash_key(TWIN)
    assert LONG != TWIN


def test_a_key_at_both_ends_of_a_range_is_inside() -> None:
    at = hash_key(b"a")
    chunk = hashed([(b"a", b"")])
    inside = [HashRange(at, at), HashRange(0, at), HashRange(at, HASH_MAX)]
    outside = [HashRange(0, at - 1), HashRange(at + 1, HASH_MAX)]
    assert [Filtering(RecordFilter((r,))).kept(chunk).tolist() for r in inside] == [[True]] * 3
    assert [Filtering(RecordFilter((r,))).kept(chunk).tolist() for r in outside] == [[False]] * 2


@pytest.mark.parametrize(
    "of",
    [
        pytest.param(RecordFilter(most_bytes=3), id="sizes"),
        pytest.param(EVERYTHING, id="everything"),
    ],
)
def test_a_filter_without_keys_and_ranges_computes_no_hash(of: RecordFilter, monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = Filtering(of)
    monkeypatch.setattr("spark_coop_source.select.chosen.hash_records", None)
    assert prepared.kept(hashed([(b"a", b"b"), (b"a", b"bcd")])).tolist() == [True, of.most_bytes == OFFSET_MAX]
