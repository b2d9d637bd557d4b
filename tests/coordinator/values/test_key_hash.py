"""The key hash: fixed for ever, since positions in Redis are stored by it."""

from hypothesis import given
from hypothesis import strategies as st

from coordinator.values.key_hash import hash_key, hash_record
from coordinator.values.ranges import HASH_MAX


def test_the_hash_is_the_upper_63_bits_of_murmur3() -> None:
    assert hash_key(b"foo") == 16_316_970_633_193_145_697 >> 1, "the value that the page of mmh3 shows for 'foo'"


@given(st.binary())
def test_a_hash_lies_in_the_hash_space(key: bytes) -> None:
    assert 0 <= hash_key(key) <= HASH_MAX
    assert hash_record(key, 5) == hash_key(key)


def test_records_without_a_key_are_spread_by_their_offsets() -> None:
    hashes = [hash_record(None, offset) for offset in range(1_000)]
    assert len(set(hashes)) == 1_000
    assert hash_record(None, 7) == hashes[7], "a replay spreads them the same way"
    assert hash_record(b"", 7) == hash_record(b"", 8), "an empty key is a key"
