"""The text of an assignment in Redis, and a member's own words: read back as written, refused when damaged."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.assignment.assignment_text import Ranges, fields_of, ranges_of, ranges_text, subscriber
from coordinator.assignment.assignors.assignor import Subscriber
from coordinator.errors import StateFormatError
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange
from coordinator.values.subscription import TopicPartition

TP = TopicPartition("orders", 0)
LOWER, UPPER = cuts(2)

topics = st.text("abz019._-", min_size=1, max_size=8)
bounds = st.lists(st.integers(0, HASH_MAX), max_size=6, unique=True).map(sorted)
ranges = st.dictionaries(
    st.builds(TopicPartition, topics, st.integers(0, 2**31 - 1)),
    bounds.map(lambda ends: tuple(map(HashRange, ends[::2], ends[1::2]))),
    max_size=6,
)


@given(ranges)
def test_ranges_are_read_back_as_they_were_written(some: Ranges) -> None:
    assert ranges_of(ranges_text(some)) == some


def test_the_text_is_canonical_for_each_order_of_partitions() -> None:
    one, two = TopicPartition("a", 2), TopicPartition("a", 10)
    first, second = ranges_text({one: (LOWER,), two: (WHOLE,)}), ranges_text({two: (WHOLE,), one: (LOWER,)})
    assert first == second == f'{{"a":{{"2":["{LOWER}"],"10":["{WHOLE}"]}}}}'


def test_a_member_without_an_assignment_has_no_ranges() -> None:
    assert ranges_of("") == {}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("{", id="cut JSON"),
        pytest.param("null", id="JSON null"),
        pytest.param("[]", id="a list"),
        pytest.param("0", id="a number"),
        pytest.param('{"orders":["0"]}', id="a list for the partitions"),
        pytest.param('{"orders":{"zero":[]}}', id="a partition that is no number"),
        pytest.param('{"orders":{"0":null}}', id="no list of ranges"),
        pytest.param('{"orders":{"0":[5]}}', id="a number for a range"),
        pytest.param('{"orders":{"0":["0-7"]}}', id="a range without its 16 digits"),
        pytest.param('{"orders":{"0":["8000000000000000-8000000000000001"]}}', id="a range beyond the hash space"),
        pytest.param(f'{{"orders":{{"0":["{HASH_MAX:016x}-{0:016x}"]}}}}', id="an inverted range"),
        pytest.param(f'{{"orders":{{"-1":["{WHOLE}"]}}}}', id="a partition below 0"),
    ],
)
def test_damaged_text_is_refused(text: str) -> None:
    with pytest.raises(StateFormatError):
        ranges_of(text)


@given(ranges.filter(bool), st.data())
def test_a_text_that_was_cut_anywhere_is_refused(some: Ranges, data: st.DataObject) -> None:
    text = ranges_text(some)
    with pytest.raises(StateFormatError):
        ranges_of(text[: data.draw(st.integers(1, len(text) - 1))])


def test_the_error_shows_the_beginning_of_the_text_only() -> None:
    with pytest.raises(StateFormatError) as error:
        ranges_of(json.dumps({"orders": "x" * 5_000}))
    assert '"orders": "xxx' in str(error.value)
    assert len(str(error.value)) < 200


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param(
            fields_of(frozenset({"b", "a"}), 4, (), sharing=True),
            (4, frozenset({"a", "b"})),
            id="a member's own text is parsed",
        ),
        pytest.param(
            fields_of(frozenset(), 1, (), sharing=True), (1, frozenset()), id="a pattern that matches nothing yet"
        ),
    ],
)
def test_subscriber(fields: dict[str, str], expected: tuple[int, frozenset[str]]) -> None:
    capacity, subscribed = expected
    assert subscriber("m-1", fields) == Subscriber("m-1", capacity, subscribed, metadata=fields)


@pytest.mark.parametrize("capacity", ["0", "-1", "", "four", "1.5", "٣", " 2", "9" * 20])
def test_a_capacity_that_is_no_number_above_0_is_refused_and_the_member_named(capacity: str) -> None:
    with pytest.raises(StateFormatError, match="member m-1"):
        subscriber("m-1", {"capacity": capacity})
