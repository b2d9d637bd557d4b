"""Pieces of reads: the same records in the same order, in sizes that follow the time of the work on them."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from spark_coop_source.arrow_output.record_batch import ROWS
from spark_coop_source.task.reads import FIRST_ROWS, RecordsRead, WorkPieces


def read(offsets: list[int], until: int) -> RecordsRead:
    return RecordsRead(pa.record_batch({"offset": pa.array(offsets, pa.int64())}), until)


def offsets(read: RecordsRead) -> list[int]:
    found: list[int] = read.records.column("offset").to_pylist()
    return found


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 5)), max_size=8))
def test_pieces_have_all_records_in_order_and_name_the_offset_after_them(sizes: list[tuple[int, int]]) -> None:
    """A read has some records, and then some offsets of other tasks."""
    reads, at = list[RecordsRead](), 0
    for records, others in sizes:
        reads.append(read([*range(at, at + records)], at := at + records + others))
    pieces = list(WorkPieces(1_000.0, lambda: 0.0).of(iter(reads)))
    assert [o for p in pieces for o in offsets(p)] == [o for r in reads for o in offsets(r)]
    for number, piece in enumerate(pieces):
        assert all(o < piece.until for o in offsets(piece))
        assert all(piece.until <= o for later in pieces[number + 1 :] for o in offsets(later))
    assert [p.until for p in pieces[-1:]] == [r.until for r in reads[-1:]]


def sizes_with(ms_of_a_record: float) -> list[int]:
    """The sizes of pieces while a function takes so long for each record. A task has a second."""
    clock = [0.0]
    found = list[int]()
    for piece in WorkPieces(1_000.0, lambda: clock[0]).of(iter([read([*range(60_000)], 60_000)])):
        found.append(len(piece.records))
        clock[0] += len(piece.records) * ms_of_a_record
    return found


def test_cheap_records__pieces_grow_to_the_largest_batch() -> None:
    sizes = sizes_with(0.0001)
    assert (sizes[0], max(sizes)) == (FIRST_ROWS, ROWS)


def test_dear_records__pieces_shrink_to_a_twentieth_of_the_time() -> None:
    assert sizes_with(10.0)[:8] == [100, 50, 25, 12, 6, 3, 3, 3]
