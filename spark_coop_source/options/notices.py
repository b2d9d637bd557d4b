"""Warnings about options without effect, or probable mistakes: one line each, logged when the query starts.

The query runs all the same. Pure; the readers log.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from coordinator.values.offset_spec import AtTimestamp, AtTimestamps, OffsetSpec
from spark_coop_source.options import table
from spark_coop_source.options.kafka_table import NO_EFFECT

_YEAR_2001_MS = 978_307_200_000
_SECONDS = (
    (table.STARTING_TIMESTAMP.name, table.STARTING_OFFSETS_BY_TIMESTAMP.name),
    (table.ENDING_TIMESTAMP.name, table.ENDING_OFFSETS_BY_TIMESTAMP.name),
)

_IGNORED_BY_BATCHES = {table.BATCH_BUDGET.name: "`spark.read` reads all of its offsets, however long that takes"}


def notices(
    texts: Mapping[str, str], starting: OffsetSpec, ending: OffsetSpec, *, batch: bool = False
) -> tuple[str, ...]:
    """The lines for options (names in lower case) that start and end there, of a `batch` or of a stream."""
    spans = (*_in_seconds(_SECONDS[0], starting), *_in_seconds(_SECONDS[1], ending))
    return (*_without_effect(texts, batch=batch), *spans)


def _without_effect(texts: Mapping[str, str], *, batch: bool) -> Iterator[str]:
    prefix = table.GROUP_ID_PREFIX.name
    reasons = {f"kafka.{name}": reason for name, reason in NO_EFFECT.items()} | {prefix: NO_EFFECT["group.protocol"]}
    reasons |= _IGNORED_BY_BATCHES if batch else {}
    for name, reason in reasons.items():
        if name.lower() in texts:
            yield f"option {name} has no effect: {reason}. Remedy: remove it."


def _in_seconds(names: tuple[str, str], spec: OffsetSpec) -> Iterator[str]:
    """A time before 2001 is probably in seconds: Kafka did not exist then. 0 means "from the first record"."""
    match spec:
        case AtTimestamp(time_ms, _):
            name, times = names[0], [time_ms]
        case AtTimestamps(times_ms, _):
            name, times = names[1], sorted(times_ms.values())
        case _:
            return
    early = next((time for time in times if 0 < time < _YEAR_2001_MS), None)
    if early is not None:
        read_as = datetime.fromtimestamp(early // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        yield (
            f"option {name}: {early} is {read_as}, because times are milliseconds. "
            f"Remedy: set {name} to milliseconds, {early * 1000} if this is a time in seconds."
        )
