"""Frames on the connection of a task: only what the key signed is a text."""

from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_coop_source.telemetry.frames import MOST_BYTES, framed, next_text

KEY = b"k" * 32


@given(st.lists(st.binary(max_size=100), max_size=4))
def test_texts_are_read_in_the_order_of_their_frames(texts: list[bytes]) -> None:
    stream = BytesIO(b"".join(framed(text, KEY) for text in texts))
    assert [next_text(stream, KEY) for _ in texts] == texts
    assert next_text(stream, KEY) is None, "the end"


@pytest.mark.parametrize("length", [0, 15, MOST_BYTES + 1, 2**32 - 1])
def test_a_frame_of_a_length_that_no_text_has_is_not_read(length: int) -> None:
    stream = BytesIO(length.to_bytes(4) + b"0" * 100)
    assert next_text(stream, KEY) is None
    assert stream.tell() == 4


def test_a_frame_that_was_cut_off_has_no_text() -> None:
    assert next_text(BytesIO(framed(b"text", KEY)[:-1]), KEY) is None
