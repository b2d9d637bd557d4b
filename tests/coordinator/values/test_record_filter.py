"""A record filter as a value: its definition, and texts that are equal for equal filters only."""

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from coordinator.values.key_hash import cuts, hash_key
from coordinator.values.record_filter import EVERYTHING, RecordFilter
from filter_oracle import keeps

LOWER, UPPER = cuts(2)
DIFFERENT = [
    EVERYTHING,
    RecordFilter((LOWER,)),
    RecordFilter((UPPER,)),
    RecordFilter(allow=frozenset([b"a"])),
    RecordFilter(allow=frozenset([b"a", b"b"])),
    RecordFilter(allow=frozenset([None])),
    RecordFilter(allow=frozenset([b"null"])),
    RecordFilter(allow=frozenset([b""])),
    RecordFilter(deny=frozenset([b"a"])),
    RecordFilter(deny=frozenset([None])),
    RecordFilter(allow=frozenset([b"a"]), deny=frozenset([b"a"])),
    RecordFilter(least_bytes=1),
    RecordFilter(most_bytes=1),
    RecordFilter(least_bytes=1, most_bytes=1),
]


def test_different_filters_have_different_texts_and_digests() -> None:
    for one, other in combinations(DIFFERENT, 2):
        assert one.digest != other.digest
        assert one.text != other.text


@given(st.lists(st.binary(max_size=4), max_size=8))
def test_the_order_of_keys_does_not_matter(keys: list[bytes]) -> None:
    assert RecordFilter(allow=frozenset(keys)).text == RecordFilter(allow=frozenset(reversed(keys))).text


def test_the_filter_that_drops_nothing_has_no_text() -> None:
    assert (EVERYTHING.digest, EVERYTHING.text) == ("", "")


def test_the_text_names_the_conditions_and_no_key() -> None:
    of = RecordFilter((LOWER,), frozenset([b"secret", None]), frozenset([b"other"]), 2, 30)
    assert of.text == f"ranges=1 allow=2 deny=1 bytes=2-30 digest={of.digest}"
    assert len(of.digest) == 16


def test_a_text_is_short_whatever_the_filter_holds() -> None:
    many = frozenset(b"%d" % i for i in range(10_000))
    assert len(RecordFilter(cuts(4_096)[::2], many, many, 2**31 - 1, 2**31 - 1).text) <= 120


def test_a_null_has_no_bytes_and_sizes_are_inclusive() -> None:
    of = RecordFilter(least_bytes=2, most_bytes=3)
    records = [(None, None), (b"a", None), (None, b"bc"), (b"a", b"bc"), (b"ab", b"cd")]
    assert [keeps(of, key, value, 0) for key, value in records] == [False, False, True, True, False]


def test_a_record_without_a_key_is_named_by_null_and_placed_by_its_offset() -> None:
    at = hash_key((5).to_bytes(8, "big"))
    half = LOWER if at in LOWER else UPPER
    assert keeps(RecordFilter((half,)), None, b"", 5)
    assert not keeps(RecordFilter(allow=frozenset([b"a"])), None, b"", 5)
    assert keeps(RecordFilter(allow=frozenset([b"a", None])), None, b"", 5)
    assert keeps(RecordFilter(deny=frozenset([b"a"])), None, b"", 5)
    assert not keeps(RecordFilter(deny=frozenset([None])), None, b"", 5)
