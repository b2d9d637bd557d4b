"""Records are found one after another, whether of equal length or not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.util import encode_varint

from spark_coop_source.decode.record_places import FIRST_STRIDE, LONGEST_RUN, WORTH_IT, chained

runs = st.tuples(
    st.sampled_from([0, 1, 62, 63, 64, 65, 8190, 8191, 8192, 2**20]) | st.integers(0, 200),
    st.sampled_from([1, 2, WORTH_IT - 1, WORTH_IT, FIRST_STRIDE + 1]) | st.integers(1, 100),
)


def wire(sizes: list[int]) -> tuple[bytes, list[int]]:
    """Records of these sizes, and where each begins."""
    data = bytearray()
    places = []
    for size in sizes:
        places.append(len(data))
        encode_varint(size, data.append)
        data += bytes([255]) * size
    return bytes(data), places


@given(st.lists(runs, max_size=6))
def test_any_records_are_found(lengths: list[tuple[int, int]]) -> None:
    sizes = [size for size, times in lengths for _ in range(times if size < 10_000 else 2)]
    data, places = wire(sizes)
    found, end = chained(b"before" + data + b"after", 6, len(sizes))
    assert [place - 6 for piece in found for place in piece.tolist()] == places
    assert end == 6 + len(data)


@pytest.mark.parametrize("count", [LONGEST_RUN - 1, LONGEST_RUN, 3 * LONGEST_RUN])
def test_long_runs_of_equal_records_are_found_in_few_pieces(count: int) -> None:
    data, places = wire([110] * count)
    found, end = chained(data, 0, count)
    assert np.concatenate(found).tolist() == places
    assert (end, len(found)) == (len(data), -(-count // LONGEST_RUN))


def test_a_run_ends_where_the_batch_does_though_equal_records_follow() -> None:
    data, places = wire([50] * 100)
    found, end = chained(data, 0, 40)
    assert np.concatenate(found).tolist() == places[:40]
    assert end == places[40]
