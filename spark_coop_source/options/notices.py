"""Warnings about options without effect, or probable mistakes: one line each, logged when the query starts.

The query runs all the same. Pure; the readers log.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from coordinator.values.offset_spec import AtTimestamp, AtTimestamps, OffsetSpec
from coordinator.values.options import key_of
from spark_coop_source.options.declarations import OPTION_OF
from spark_coop_source.options.kafka_table import NO_EFFECT

_YEAR_2001_MS = 978_307_200_000
_IGNORED_BY_BATCHES = {"batch_budget_ms": "`spark.read` reads all of its offsets, however long that takes"}


def notices(
    texts: Mapping[str, str], starting: OffsetSpec, ending: OffsetSpec, *, batch: bool = False
) -> tuple[str, ...]:
    """The lines for options (names in lower case) that start and end there, of a `batch` or of a stream."""
    spans = (*_in_seconds("starting", starting), *_in_seconds("ending", ending))
    return (*_without_effect(texts, batch=batch), *spans)


def _without_effect(texts: Mapping[str, str], *, batch: bool) -> Iterator[str]:
    reasons = {f"kafka.{name}": reason for name, reason in NO_EFFECT.items()}
    ours = {"group_id_prefix": NO_EFFECT["group.protocol"]} | (_IGNORED_BY_BATCHES if batch else {})
    reasons |= {OPTION_OF[field].name: reason for field, reason in ours.items()}
    for name, reason in reasons.items():
        if key_of(name) in texts:
            yield f"option {name} has no effect: {reason}. Remedy: remove it."


def _in_seconds(side: str, spec: OffsetSpec) -> Iterator[str]:
    """A time before 2001 is probably in seconds: Kafka did not exist then. 0 means "from the first record"."""
    match spec:
        case AtTimestamp(time_ms, _):
            field, times = f"{side}_timestamp", [time_ms]
        case AtTimestamps(times_ms, _):
            field, times = f"{side}_by_timestamp", sorted(times_ms.values())
        case _:
            return
    early = next((time for time in times if 0 < time < _YEAR_2001_MS), None)
    if early is not None:
        name = OPTION_OF[field].name
        read_as = datetime.fromtimestamp(early // 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        yield (
            f"option {name}: {early} is {read_as}, because times are milliseconds. "
            f"Remedy: set {name} to milliseconds, {early * 1000} if this is a time in seconds."
        )
