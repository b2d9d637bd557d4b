"""Our murmur3 is mmh3's, bit by bit, wherever in a buffer the bytes lie."""

import mmh3
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_coop_source.select.murmur3 import LONGEST, murmur3

AROUND_A_BLOCK = (0, 1, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33)
lengths = st.sampled_from((*AROUND_A_BLOCK, LONGEST - 1, LONGEST, LONGEST + 1, 5_000)) | st.integers(0, 100)
texts = lengths.flatmap(lambda length: st.binary(min_size=length, max_size=length))


def hashed(before: bytes, strings: list[bytes], after: bytes) -> list[int]:
    data = before + b"".join(strings) + after
    sizes = np.array([len(string) for string in strings], np.int64)
    hashes = murmur3(np.frombuffer(data, np.uint8), len(before) + np.cumsum(sizes) - sizes, sizes)
    return [int(each) for each in hashes]


def by_definition(strings: list[bytes]) -> list[int]:
    return [mmh3.hash64(string, seed=0, x64arch=True, signed=False)[0] for string in strings]


@given(st.binary(max_size=20), st.lists(texts, max_size=30), st.binary(max_size=20))
def test_any_strings_in_any_place_hash_as_mmh3_has_it(before: bytes, strings: list[bytes], after: bytes) -> None:
    assert hashed(before, strings, after) == by_definition(strings)


@pytest.mark.parametrize("length", [*range(70), LONGEST, LONGEST + 1])
def test_every_length(length: int) -> None:
    strings = [bytes((i * 37 + j) % 256 for j in range(length)) for i in range(5)]
    assert hashed(b"x", strings, b"") == by_definition(strings)
