"""Warnings about options without effect, or probable mistakes: one line each, logged when the query starts.

The query runs all the same. Pure; the readers log.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

from coordinator.values.offset_spec import AtTimestamp, AtTimestamps, OffsetSpec
from coordinator.values.options import key_of
from spark_coop_source.options.declarations import OPTION_OF, SourceOptions
from spark_coop_source.options.kafka_table import NO_EFFECT

_YEAR_2001_MS = 978_307_200_000

OF_STREAMS = frozenset((
    "max_offsets_per_trigger", "min_offsets_per_trigger", "max_trigger_delay_ms", "batch_budget_ms", "max_lead_ms",
    "report_ports",
))  # fmt: skip
"""Fields of options that `spark.read` does not read: it takes all of its offsets at once."""

OF_GROUPS = frozenset((
    "capacity", "assignor", "listener", "labels", "sharing", "several_queries", "redundancy", "standby", "policies",
    "ordering", "unread_batches", "replay_acknowledged", "max_individual_commits", "max_deferred_keys",
    "session_ms", "heartbeat_ms", "longest_ms", "retention_ms", "max_outage_ms", "growth_grace_ms",
    "on_state_loss",
))  # fmt: skip
"""Those that only a stream with a group reads. Without `group` and `redisUrl`: jobs share them with `spark.read`."""

OF_ASSIGNMENTS = frozenset({"assignor", "capacity"})
"""Those that a member with key ranges of its own does not read."""


def notices(texts: Mapping[str, str], parsed: SourceOptions, *, batch: bool = False) -> tuple[str, ...]:
    """The lines for the options of a `batch` or of a stream. `texts`: by `key_of` their names."""
    spans = (*_in_seconds("starting", parsed.starting), *_in_seconds("ending", parsed.ending))
    reasons = {f"kafka.{name}": reason for name, reason in NO_EFFECT.items() if key_of(f"kafka.{name}") in texts}
    for field, reason in _without_effect(parsed, batch=batch):
        reasons |= dict.fromkeys(OPTION_OF[field].names_in(texts), reason)
    return (*(f"option {name} has no effect: {why}. Remedy: remove it." for name, why in reasons.items()), *spans)


def _without_effect(parsed: SourceOptions, *, batch: bool) -> Iterator[tuple[str, str]]:
    """Each given option that this query does not read, by its field, and the reason."""
    grouped = not batch and "group" in parsed.given
    for field in OPTION_OF:  # in the order of their declarations
        if field not in parsed.given:
            continue
        if field == "group_id_prefix":
            yield field, NO_EFFECT["group.protocol"]
        elif batch and field in OF_STREAMS:
            yield field, "`spark.read` reads all of its offsets at once"
        elif batch and field in OF_GROUPS:
            yield field, "`spark.read` joins no group"
        elif not grouped and field in OF_GROUPS:
            yield field, "the stream has no group"
        elif parsed.pinned and field in OF_ASSIGNMENTS:
            yield field, "assign names the key ranges of this query, so none are assigned to it"


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
