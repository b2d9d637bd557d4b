"""The start and the end: the precedence of the six options, and the values that a stream or a batch refuses.

The rules are those of Spark's Kafka source (KafkaSourceProvider, measured on version 4.2.0).
"""

from collections.abc import Container

from coordinator.errors import ConflictingOptionsError, InvalidOptionError
from coordinator.values.offset_spec import (
    EARLIEST,
    LATEST,
    AtOffsets,
    AtTimestamps,
    Earliest,
    Latest,
    OffsetSpec,
)
from coordinator.values.subscription import TopicPartition
from spark_coop_source.options.declarations import ENDING, STARTING, SourceOptions


def without_effect(given: Container[str], *, streaming: bool | None) -> set[str]:
    """The given options of the start and the end that are not read: of lower rank, or the end of a stream."""
    outranked = {field for rank in (STARTING, ENDING) for field in [each for each in rank if each in given][1:]}
    return outranked | (set(ENDING) if streaming else set())


def check_stream(options: SourceOptions) -> None:
    """Refuse an end, because a stream has none; also `endingTimestamp`, which Spark ignores."""
    for name in options.names_given(ENDING):
        raise InvalidOptionError(f"option {name} is for batch queries only", "remove it, or read with spark.read")


def check_batch(start: OffsetSpec, end: OffsetSpec) -> None:
    """Refuse a start at latest, an end at earliest, and a start behind the end."""
    if start == Latest() or (isinstance(start, AtOffsets) and LATEST in start.offsets.values()):
        raise InvalidOptionError("option startingOffsets: a batch cannot start at latest (-1)", "set an earlier start")
    if end == Earliest() or (isinstance(end, AtOffsets) and EARLIEST in end.offsets.values()):
        raise InvalidOptionError("option endingOffsets: a batch cannot end at earliest (-2)", "set a later end")
    if isinstance(start, AtOffsets) and isinstance(end, AtOffsets):
        _check_pair("startingOffsets", dict(start.offsets), "endingOffsets", dict(end.offsets))
    if isinstance(start, AtTimestamps) and isinstance(end, AtTimestamps):
        _check_pair(
            "startingOffsetsByTimestamp",
            dict(start.timestamps_ms),
            "endingOffsetsByTimestamp",
            dict(end.timestamps_ms),
        )


def _check_pair(
    start_name: str, start: dict[TopicPartition, int], end_name: str, end: dict[TopicPartition, int]
) -> None:
    if start.keys() != end.keys():
        odd = min(start.keys() ^ end.keys())
        raise ConflictingOptionsError(
            f"options {start_name} and {end_name} must name the same partitions: {odd} is in one of them only",
            "add it to the other one",
        )
    for partition, offset in start.items():
        if 0 <= end[partition] < offset:
            raise ConflictingOptionsError(
                f"{start_name} of {partition} is {offset}, after its {end_name}, {end[partition]}",
                "swap them, or set a later end",
            )
