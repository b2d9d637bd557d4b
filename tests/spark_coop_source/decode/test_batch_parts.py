"""A large batch in parts: no record is cut, lost or held for longer than its piece."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.util import decode_varint

from bombs import record
from spark_coop_source.decode.batch_parts import BatchParts

NO_BOUND = 2**31 - 1


def blocks(data: bytes, size: int) -> Iterator[bytes]:
    return (data[at : at + size] for at in range(0, len(data), size))


def refuse(delta: int, size: int) -> None:
    raise AssertionError(f"record {delta} of {size} bytes is not too large")


def read(pieces: BatchParts, rows: int, size: int) -> list[bytes]:
    """The records of all pieces, each of which is checked against its bounds."""
    found = []
    for piece in pieces.of(rows, size):
        data = bytes(piece.data)
        ends = [sum(decode_varint(data, at)) for at in piece.places.tolist()]
        found += [data[at:end] for at, end in zip(piece.places.tolist(), ends, strict=True)]
        assert len(ends) <= rows
        assert len(ends) == 1 or ends[-1] - piece.places[0] <= size
    return found


@given(st.lists(st.integers(0, 300)), st.integers(1, 400), st.integers(1, 10), st.integers(40, 500))
def test_the_records_of_all_pieces_are_those_of_the_batch(lengths: list[int], block: int, rows: int, size: int) -> None:
    made = [record(delta, bytes(length)) for delta, length in enumerate(lengths)]
    pieces = BatchParts(blocks(b"".join(made), block), len(made), NO_BOUND, refuse)
    assert read(pieces, rows, size) == made


@given(st.lists(st.integers(0, 300)), st.integers(1, 400))
def test_a_record_beyond_the_bound_is_named_and_passed_over(lengths: list[int], block: int) -> None:
    made = [record(delta, bytes(length)) for delta, length in enumerate(lengths)]
    named: list[tuple[int, int]] = []
    pieces = BatchParts(blocks(b"".join(made), block), len(made), 100, lambda delta, size: named.append((delta, size)))
    assert read(pieces, 5, 60) == [one for one in made if len(one) <= 100]
    assert named == [(delta, len(one)) for delta, one in enumerate(made) if len(one) > 100]


def test_a_record_of_exactly_the_bound_is_read() -> None:
    one = record(0, bytes(90))
    assert read(BatchParts(blocks(one, 7), 1, len(one), refuse), 5, 60) == [one]


@pytest.mark.parametrize("change", [-1, 1])
def test_a_batch_that_does_not_end_with_its_last_record_is_refused(change: int) -> None:
    data = record(0, b"abc") + record(1, b"def")
    damaged = data[:change] if change < 0 else data + b"\0"
    with pytest.raises(ValueError, match=r"beyond the end of its batch|more in the batch than its records"):
        read(BatchParts(blocks(damaged, 7), 2, NO_BOUND, refuse), 5, 60)
