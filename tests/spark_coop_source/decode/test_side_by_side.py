"""The records of many batches are found together as they are found one by one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.util import encode_varint

from spark_coop_source.decode.record_places import chained
from spark_coop_source.decode.side_by_side import WORTH_IT, side_by_side

sizes = st.sampled_from([0, 1, 63, 64, 65, 8191]) | st.integers(0, 200)


def wire(lengths: list[int]) -> bytes:
    data = bytearray()
    for length in lengths:
        encode_varint(length, data.append)
        data += bytes([255]) * length
    return bytes(data)


@given(st.lists(st.lists(sizes, min_size=1, max_size=5), min_size=WORTH_IT, max_size=3 * WORTH_IT))
def test_the_records_of_many_batches_are_found(batches: list[list[int]]) -> None:
    batches = [*batches, *[[1] * 5] * 5 * WORTH_IT]  # always worth it
    wires = [wire(lengths) for lengths in batches]
    ends = np.cumsum([len(each) for each in wires])
    begins = np.concatenate([[0], ends[:-1]])
    data, counts = b"".join(wires), np.array([len(each) for each in batches])
    one_by_one = [chained(data, begin, count)[0] for begin, count in zip(begins.tolist(), counts.tolist(), strict=True)]
    found = side_by_side(data, begins, counts)
    assert found is not None
    assert found[0].tolist() == [place for pieces in one_by_one for piece in pieces for place in piece.tolist()]
    assert found[1].tolist() == ends.tolist()


def test_few_batches_of_one_length_are_left_to_the_loop() -> None:
    one = wire([3] * 10)
    few = WORTH_IT - 1
    assert side_by_side(one * few, np.arange(few) * len(one), np.full(few, 10)) is None


def test_a_record_whose_length_needs_three_bytes_has_a_wrong_end() -> None:
    one = wire([8192])
    many = 2 * WORTH_IT
    ends = len(one) * (np.arange(many) + 1)
    found = side_by_side(one * many, ends - len(one), np.full(many, 1))
    assert found is not None
    assert not (found[1] == ends).any()


def test_records_that_lead_out_of_the_data_are_left_to_the_loop() -> None:
    one = wire([50])
    many = 2 * WORTH_IT
    assert side_by_side(one * many, np.arange(many) * len(one), np.full(many, 2)) is None
