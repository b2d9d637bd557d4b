"""JSON options: accepted texts, and refused texts that Spark would misread."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.values.offset_spec import AtOffsets
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange
from coordinator.values.subscription import TopicPartition
from spark_coop_source.options.json_values import AssignmentText, OffsetsText, TimestampsText

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
MIDDLE = HASH_MAX // 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"t":[1,0]}', {T0: (WHOLE,), T1: (WHOLE,)}, id="Spark's form"),
        pytest.param('{"t":[0,0]}', {T0: (WHOLE,)}, id="a partition listed twice"),
        pytest.param('{"t":[],"u":[0]}', {U0: (WHOLE,)}, id="a topic without partitions beside another"),
        pytest.param('{"t":{"0":[]}}', {T0: (WHOLE,)}, id="an empty list is the whole partition"),
        pytest.param('{"t":{"0":[[3,9]]}}', {T0: (HashRange(3, 9),)}, id="a key range"),
        pytest.param(
            '{"t":{"0":[[10,12],[0,9]]}}', {T0: (HashRange(0, 9), HashRange(10, 12))}, id="ranges are put in order"
        ),
        pytest.param(f'{{"t":{{"0":[[0,{HASH_MAX}]]}}}}', {T0: (WHOLE,)}, id="the whole space, explicitly"),
        pytest.param('{"t":{"0":[[5,5]]}}', {T0: (HashRange(5, 5),)}, id="a single hash"),
        pytest.param('{"t":{"0":[[0,1]]},"u":[0]}', {T0: (HashRange(0, 1),), U0: (WHOLE,)}, id="both forms together"),
    ],
)
def test_partitions_are_assigned(text: str, expected: dict[TopicPartition, tuple[HashRange, ...]]) -> None:
    assert AssignmentText().parse(text).partitions == expected


@pytest.mark.parametrize(
    ("text", "pinned"),
    [
        pytest.param('{"t":[0]}', False, id="Spark's form"),
        pytest.param('{"t":{"0":[[0,1]]}}', True, id="key ranges"),
        pytest.param('{"t":{"0":[]}}', True, id="a whole partition in the form of key ranges"),
        pytest.param('{"t":{"0":[[0,1]]},"u":[0]}', True, id="both forms together"),
    ],
)
def test_the_form_with_key_ranges_pins_a_member_of_a_group(text: str, pinned: bool) -> None:
    assert AssignmentText().parse(text).pinned is pinned


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "not JSON", id="nothing"),
        pytest.param("t", "not JSON", id="a bare topic"),
        pytest.param("{'t':[0]}", "not JSON", id="single quotes"),
        pytest.param('{"t":[0]} x', "not JSON", id="text behind the JSON"),
        pytest.param("[" * 100_000, "not JSON", id="nested without end"),
        pytest.param('["t"]', "not a JSON object", id="a list"),
        pytest.param("null", "not a JSON object", id="null"),
        pytest.param("{}", "names no partition", id="an empty object"),
        pytest.param('{"t":[]}', "names no partition", id="a topic without partitions"),
        pytest.param('{"t":{}}', "names no partition", id="a topic without key ranges"),
        pytest.param('{"t":[0],"t":[1]}', '"t" occurs twice', id="a topic twice"),
        pytest.param('{"":[0]}', "no topic can be called ''", id="a topic without a name"),
        pytest.param('{"#":[0]}', "no topic can be called '#'", id="a name no topic can have"),
        pytest.param('{"..":[0]}', "no topic can be called '..'", id="two dots"),
        pytest.param('{"t":["0"]}', 'partition "0" is not a whole number', id="a partition as text"),
        pytest.param('{"t":[1.5]}', "partition 1.5 is not a whole number", id="one and a half"),
        pytest.param('{"t":[null]}', "partition null is not", id="no number"),
        pytest.param('{"t":[true]}', "partition true is not", id="true"),
        pytest.param('{"t":[-1]}', "partition -1 is not within 0", id="minus one"),
        pytest.param('{"t":[99999999999]}', "is not within 0 to 2147483647", id="beyond 32 bits"),
        pytest.param('{"t":0}', "not an object with partitions", id="a number for a topic"),
        pytest.param('{"t":{"a":[]}}', '"a" is not the number of a partition', id="a letter for a partition"),
        pytest.param('{"t":{"00":[]}}', '"00" is not the number', id="a partition with a leading zero"),
        pytest.param('{"t":{"0":5}}', "key ranges of t-0 are not a list", id="a number for key ranges"),
        pytest.param('{"t":{"0":[0,5]}}', "0 is not a key range [lo,hi]", id="a range without its own brackets"),
        pytest.param('{"t":{"0":[[1,2,3]]}}', "[1, 2, 3] is not a key range", id="three bounds"),
        pytest.param('{"t":{"0":[[9,3]]}}', "[9,3] is inverted", id="an inverted range"),
        pytest.param('{"t":{"0":[[-1,3]]}}', "hash -1 is not within 0", id="a hash below zero"),
        pytest.param(
            f'{{"t":{{"0":[[0,{HASH_MAX + 1}]]}}}}', f"not within 0 to {HASH_MAX}", id="a hash beyond the space"
        ),
        pytest.param('{"t":{"0":[[0,5],[5,9]]}}', "[0,5] and [5,9] of t-0 overlap", id="ranges that share a hash"),
        pytest.param('{"t":{"0":[["0","5"]]}}', 'hash "0" is not a whole number', id="a range as text"),
    ],
)
def test_an_assignment_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        AssignmentText().parse(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param('{"t":{"0":1.9}}', "offset 1.9 is not a whole number", id="a fraction, which Spark cuts off"),
        pytest.param('{"t":{"0":null}}', "offset null is not", id="null, which Spark reads as 0"),
        pytest.param('{"t":{"0":1,"0":2}}', '"0" occurs twice', id="a partition twice, of which Spark takes the last"),
        pytest.param('{"t":{"0":1}} x', "not JSON", id="text behind the JSON, which Spark does not see"),
        pytest.param('{"t":{"0":99999999999999999999}}', "not within", id="beyond 64 bits, which Spark wraps around"),
        pytest.param('{"t":{"0":-3}}', "offset -3 is not within -2", id="an offset that means nothing"),
        pytest.param('{"t":{"0":"23"}}', 'offset "23" is not', id="an offset as text"),
        pytest.param('{"t":{"0":NaN}}', "offset NaN is not", id="not a number"),
        pytest.param('{"t":{" 0":1}}', '" 0" is not the number of a partition', id="a space before a partition"),
        pytest.param('{"t":{"-1":1}}', '"-1" is not the number of a partition', id="a partition below zero"),
        pytest.param('{"t":"earliest"}', "not an object with partitions", id="a word for a topic"),
        pytest.param("earliest latest", "not JSON", id="two words"),
    ],
)
def test_offsets_are_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        OffsetsText().parse(text)


def test_a_timestamp_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="timestamp -1 is not within 0"):
        TimestampsText().parse('{"t":{"0":-1}}')


PARTITIONS = st.builds(TopicPartition, st.from_regex(r"[a-z._-]{3,9}", fullmatch=True), st.integers(0, 2**31 - 1))


@given(st.dictionaries(PARTITIONS, st.integers(-2, 2**63 - 1), min_size=1))
def test_any_offsets_written_as_json_are_read_back(offsets: dict[TopicPartition, int]) -> None:
    topics: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in offsets.items():
        topics.setdefault(topic, {})[str(partition)] = offset
    assert OffsetsText().parse(json.dumps(topics)) == AtOffsets(offsets)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_any_other_json_is_refused_and_nothing_else_happens(value: object) -> None:
    for kind in (OffsetsText(), TimestampsText(), AssignmentText()):
        with pytest.raises(ValueError, match=" "):
            kind.parse(json.dumps({"t": {"0": [[value]]}}))
