"""A dead letter adds eight headers to a record, and gives the record back from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.values.dead_letter import HEADERS, MESSAGE_CHARACTERS, NO_TIME, DeadLetter, Header, SourceRecord
from coordinator.values.subscription import TopicPartition

RECORD = SourceRecord(TopicPartition("orders", 3), 17, 1_700_000_000_000, b"k", b"v", (("a", b"1"), ("b", None)))
LETTER = DeadLetter(RECORD, "to-lake", "ValueError", "no such customer", 5)

OWN = st.lists(
    st.tuples(st.text(max_size=3) | st.sampled_from(HEADERS), st.none() | st.binary(max_size=3)), max_size=10
)
RECORDS = st.builds(
    SourceRecord,
    st.builds(TopicPartition, st.from_regex(r"[a-z._-]{1,9}", fullmatch=True), st.integers(0, 9)),
    st.integers(0, 2**63 - 1),
    st.just(NO_TIME) | st.integers(0, 2**62),
    st.none() | st.binary(max_size=5),
    st.none() | st.binary(max_size=5),
    OWN.map(tuple),
)


def test_its_headers_are_those_of_the_record_and_then_eight_texts() -> None:
    assert LETTER.headers == (
        ("a", b"1"),
        ("b", None),
        ("coop.topic", b"orders"),
        ("coop.partition", b"3"),
        ("coop.offset", b"17"),
        ("coop.timestamp", b"1700000000000"),
        ("coop.group", b"to-lake"),
        ("coop.error", b"ValueError"),
        ("coop.message", b"no such customer"),
        ("coop.attempts", b"5"),
    )


@given(RECORDS, st.text(max_size=5), st.text(max_size=50), st.integers(1, 10**6))
def test_every_record_comes_back_as_it_was(record: SourceRecord, error: str, message: str, attempts: int) -> None:
    letter = DeadLetter(record, "g", error, message, attempts)
    assert DeadLetter.parse(record.key, record.value, letter.headers) == letter


def test_a_record_that_died_twice_comes_back_with_the_headers_of_its_first_death() -> None:
    again = SourceRecord(TopicPartition("orders", 3), 99, NO_TIME, b"k", b"v", LETTER.headers)
    found = DeadLetter.parse(b"k", b"v", DeadLetter(again, "to-lake", "KeyError", "", 1).headers)
    assert found is not None
    assert found.record == again


def test_a_long_message_is_cut_and_half_a_surrogate_is_replaced() -> None:
    long = DeadLetter(RECORD, "g", "E", "\ud800" + "x" * 10**6, 1)
    assert dict(long.headers)["coop.message"] == b"?" + b"x" * (MESSAGE_CHARACTERS - 1)


def without(name: str) -> tuple[Header, ...]:
    return tuple(header for header in LETTER.headers if header[0] != name)


OTHERS = {
    "no headers at all": (),
    "fewer than eight": LETTER.headers[-7:],
    "another header comes last": (*LETTER.headers, ("x", b"")),
    "one is missing": without("coop.group"),
    "one is null": (*without("coop.attempts"), ("coop.attempts", None)),
    "a number is a word": (*without("coop.attempts"), ("coop.attempts", b"five")),
    "a number is below -1": (*without("coop.attempts"), ("coop.attempts", b"-2")),
    "a number has no digits of ASCII": (*without("coop.attempts"), ("coop.attempts", "\u0665".encode())),
}


@pytest.mark.parametrize("headers", OTHERS.values(), ids=OTHERS)
def test_a_record_without_exactly_these_headers_is_no_dead_letter(headers: tuple[Header, ...]) -> None:
    assert DeadLetter.parse(b"k", b"v", headers) is None


def test_its_content_is_never_shown() -> None:
    secret = SourceRecord(TopicPartition("orders", 0), 1, 0, b"pa55word", b"pa55word", (("h", b"pa55word"),))
    assert "pa55word" not in repr(DeadLetter(secret, "g", "E", "m", 1))
