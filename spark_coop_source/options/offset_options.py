"""The start and the end: the precedence of the six options, and the values that a stream or a batch refuses.

The rules are those of Spark's Kafka source (KafkaSourceProvider, measured on version 4.2.0).
"""

from coordinator.errors import ConflictingOptionsError, InvalidOptionError
from coordinator.values.offset_spec import (
    EARLIEST,
    LATEST,
    AtOffsets,
    AtTimestamp,
    AtTimestamps,
    Earliest,
    Latest,
    NoMatch,
    OffsetSpec,
)
from coordinator.values.subscription import TopicPartition
from spark_coop_source.options import table
from spark_coop_source.options.values import Given

_STARTING = (table.STARTING_TIMESTAMP, table.STARTING_OFFSETS_BY_TIMESTAMP, table.STARTING_OFFSETS)
_ENDING = (table.ENDING_TIMESTAMP, table.ENDING_OFFSETS_BY_TIMESTAMP, table.ENDING_OFFSETS)


def starting(given: Given, default: OffsetSpec) -> OffsetSpec:
    """The start: one timestamp before timestamps by partition before offsets. Options of lower rank are not read."""
    no_match = NoMatch(given.need(table.STARTING_STRATEGY))
    if (timestamp := given.get(table.STARTING_TIMESTAMP)) is not None:
        return AtTimestamp(timestamp, no_match)
    if table.STARTING_OFFSETS_BY_TIMESTAMP in given:
        return AtTimestamps(given.need(table.STARTING_OFFSETS_BY_TIMESTAMP), no_match)
    return given.get(table.STARTING_OFFSETS) or default


def starting_option(given: Given) -> str | None:
    """The name of the option that `starting` reads; None if the default counts."""
    return next((option.name for option in _STARTING if option in given), None)


def ending(given: Given) -> OffsetSpec:
    """The end of a batch, by the same precedence; a time without a later record means latest."""
    if (timestamp := given.get(table.ENDING_TIMESTAMP)) is not None:
        return AtTimestamp(timestamp, NoMatch.LATEST)
    if table.ENDING_OFFSETS_BY_TIMESTAMP in given:
        return AtTimestamps(given.need(table.ENDING_OFFSETS_BY_TIMESTAMP), NoMatch.LATEST)
    return given.get(table.ENDING_OFFSETS) or Latest()


def check_stream(given: Given) -> None:
    """Refuse an end, because a stream has none; also `endingTimestamp`, which Spark ignores."""
    for option in _ENDING:
        if option.name.lower() in given.texts:
            raise InvalidOptionError(
                f"option {option.name} is for batch queries only", "remove it, or read with spark.read"
            )


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
