"""Many variable-length integers are read as kafka-python reads each."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.util import encode_varint

from spark_coop_source.decode.varints import varints

SIGNED_64 = st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize(
    "integers",
    [
        pytest.param(st.integers(-64, 63), id="all of one byte"),
        pytest.param(st.integers(-8192, 8191), id="of one and two bytes"),
        pytest.param(SIGNED_64 | st.integers(-100, 100), id="of any size"),
    ],
)
@pytest.mark.parametrize("after", [b"", b"\xff"])
def test_integers_are_read_wherever_they_lie(integers: st.SearchStrategy[int], after: bytes) -> None:
    @given(st.lists(integers, min_size=1))
    def check(numbers: list[int]) -> None:
        wire, places, ends = bytearray(), [], []
        for number in numbers:
            places.append(len(wire))
            encode_varint(number, wire.append)
            ends.append(len(wire))
            wire += after
        values, found_ends = varints(np.frombuffer(bytes(wire), np.uint8), np.array(places))
        assert (values.tolist(), found_ends.tolist()) == (numbers, ends)

    check()


def test_none_are_read_where_none_are_asked_for() -> None:
    values, ends = varints(np.zeros(0, np.uint8), np.zeros(0, np.int64))
    assert (len(values), len(ends)) == (0, 0)


@pytest.mark.parametrize(
    ("wire", "error"),
    [
        (b"\xff" * 11, ValueError),
        (b"\xff" * 9 + b"\2", ValueError),
        (b"\xff", IndexError),
        (b"\xff\xff", IndexError),
    ],
)
def test_integers_that_do_not_end_or_have_more_than_64_bits_are_refused(wire: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        varints(np.frombuffer(wire, np.uint8), np.array([0]))
