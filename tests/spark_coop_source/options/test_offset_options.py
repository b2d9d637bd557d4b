"""Where to start and end: each row was also put to Spark's own Kafka source (version 4.2.0)."""

import pytest

from coordinator.errors import ConfigurationError, ConflictingOptionsError, InvalidOptionError
from coordinator.values.offset_spec import (
    AtOffsets,
    AtTimestamp,
    AtTimestamps,
    Earliest,
    Latest,
    NoMatch,
    OffsetSpec,
)
from coordinator.values.subscription import TopicPartition
from spark_coop_source.options.declarations import SourceOptions
from spark_coop_source.options.options import validate

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def batch(**options: str) -> SourceOptions:
    return validate({"kafka.bootstrap.servers": "h:1", "subscribe": "t", **options}, streaming=False)


def stream(**options: str) -> SourceOptions:
    return validate({"kafka.bootstrap.servers": "h:1", "assign": '{"t":[0]}', **options}, streaming=True)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({}, Latest(), id="latest by default"),
        pytest.param({"startingOffsets": " EARLIEST"}, Earliest(), id="earliest in any case"),
        pytest.param({"startingOffsets": "LaTest "}, Latest(), id="latest in any case"),
        pytest.param(
            {"startingOffsets": '{"T":{"0":23,"1":-1}}'},
            AtOffsets({TopicPartition("T", 0): 23, TopicPartition("T", 1): -1}),
            id="offsets, topics case-sensitive",
        ),
        pytest.param({"startingOffsets": '{"t":{"0":-2}}'}, AtOffsets({T0: -2}), id="-2 is earliest"),
        pytest.param({"startingOffsets": "{}"}, AtOffsets({}), id="no partition at all, judged against the log later"),
        pytest.param(
            {"startingTimestamp": " 5 ", "startingOffsetsByTimestamp": "nope", "startingOffsets": "nope"},
            AtTimestamp(5, NoMatch.ERROR),
            id="one timestamp before everything else, which is not even read",
        ),
        pytest.param(
            {"startingOffsetsByTimestamp": '{"t":{"0":7}}', "startingOffsets": "nope"},
            AtTimestamps({T0: 7}, NoMatch.ERROR),
            id="timestamps by partition before offsets",
        ),
        pytest.param(
            {"startingTimestamp": "5", "startingOffsetsByTimestampStrategy": "LATEST"},
            AtTimestamp(5, NoMatch.LATEST),
            id="a strategy in any case",
        ),
        pytest.param(
            {"startingOffsetsByTimestamp": '{"t":{"0":7}}', "startingOffsetsByTimestampStrategy": "latest"},
            AtTimestamps({T0: 7}, NoMatch.LATEST),
            id="a strategy for timestamps by partition",
        ),
    ],
)
def test_the_start_of_a_stream(options: dict[str, str], expected: OffsetSpec) -> None:
    assert stream(**options).starting == expected


@pytest.mark.parametrize(
    ("options", "start", "end"),
    [
        pytest.param({}, Earliest(), Latest(), id="everything by default"),
        pytest.param({"endingOffsets": '{"t":{"0":-1}}'}, Earliest(), AtOffsets({T0: -1}), id="-1 is latest"),
        pytest.param(
            {"endingTimestamp": "9", "endingOffsetsByTimestamp": "nope", "endingOffsets": "nope"},
            Earliest(),
            AtTimestamp(9, NoMatch.LATEST),
            id="one ending timestamp before everything else, with latest where nothing matches",
        ),
        pytest.param(
            {"endingOffsetsByTimestamp": '{"t":{"0":9}}', "endingOffsets": "nope"},
            Earliest(),
            AtTimestamps({T0: 9}, NoMatch.LATEST),
            id="ending timestamps by partition before ending offsets",
        ),
        pytest.param(
            {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":5}}'},
            AtOffsets({T0: 5}),
            AtOffsets({T0: 5}),
            id="an empty range",
        ),
        pytest.param(
            {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":-1}}'},
            AtOffsets({T0: 5}),
            AtOffsets({T0: -1}),
            id="up to latest",
        ),
        pytest.param(
            {"startingTimestamp": "5", "startingOffsets": "latest"},
            AtTimestamp(5, NoMatch.ERROR),
            Latest(),
            id="latest does not matter where a timestamp goes before it",
        ),
        pytest.param(
            {"startingOffsetsByTimestamp": '{"t":{"0":5}}', "endingOffsets": '{"t":{"1":4}}'},
            AtTimestamps({T0: 5}, NoMatch.ERROR),
            AtOffsets({T1: 4}),
            id="a time and an offset cannot be compared",
        ),
    ],
)
def test_the_ends_of_a_batch(options: dict[str, str], start: OffsetSpec, end: OffsetSpec) -> None:
    checked = batch(**options)
    assert (checked.starting, checked.ending) == (start, end)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        pytest.param({"startingOffsets": "latest"}, InvalidOptionError, "start at latest", id="a start at latest"),
        pytest.param({"startingOffsets": '{"t":{"0":-1}}'}, InvalidOptionError, "latest (-1)", id="a start at -1"),
        pytest.param({"endingOffsets": "earliest"}, InvalidOptionError, "end at earliest", id="an end at earliest"),
        pytest.param({"endingOffsets": '{"t":{"0":-2}}'}, InvalidOptionError, "earliest (-2)", id="an end at -2"),
        pytest.param(
            {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":4}}'},
            ConflictingOptionsError,
            "startingOffsets of t-0 is 5",
            id="a start behind the end",
        ),
        pytest.param(
            {"startingOffsets": '{"t":{"0":5}}', "endingOffsets": '{"t":{"0":6,"1":9}}'},
            ConflictingOptionsError,
            "t-1 is in one of them only",
            id="offsets of different partitions",
        ),
        pytest.param(
            {"startingOffsetsByTimestamp": '{"t":{"0":5}}', "endingOffsetsByTimestamp": '{"t":{"0":4}}'},
            ConflictingOptionsError,
            "endingOffsetsByTimestamp, 4",
            id="a starting time behind the ending one",
        ),
        pytest.param(
            {"startingTimestamp": "x"}, InvalidOptionError, "startingTimestamp = 'x'", id="a time that is none"
        ),
        pytest.param({"startingTimestamp": ""}, InvalidOptionError, "not a whole number", id="an empty time"),
        pytest.param({"startingTimestamp": "-5"}, InvalidOptionError, "too small", id="a time before 1970"),
        pytest.param(
            {"startingOffsetsByTimestampStrategy": " latest"},
            InvalidOptionError,
            "error or latest",
            id="a strategy with a space",
        ),
    ],
)
def test_a_batch_query_refuses_invalid_ends(
    options: dict[str, str], error: type[ConfigurationError], words: str
) -> None:
    with pytest.raises(error) as refused:
        batch(**options)
    assert words in str(refused.value)
    assert refused.value.remedy


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"endingOffsets": "latest"}, id="ending offsets"),
        pytest.param({"endingOffsetsByTimestamp": "{}"}, id="ending times"),
        pytest.param({"endingTimestamp": "5"}, id="one ending time, which Spark overlooks"),
    ],
)
def test_a_stream_refuses_every_end(options: dict[str, str]) -> None:
    with pytest.raises(InvalidOptionError, match="batch queries only"):
        stream(**options)
