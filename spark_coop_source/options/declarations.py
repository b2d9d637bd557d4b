"""Every option of the source but `kafka.*`, declared once: name, kind of value, default and type.

The options that the member of a group obeys are declared with its settings (`MemberOptions`), and those of tasks in
`ReadOptions`. A new option is a field here or there, and the code that uses it reads the field. Its meaning is a text
of docs/options.md (scripts/lib/pages/option_meanings.py).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from pyspark.sql.types import StructType

from coordinator.assignment.settings import MemberOptions
from coordinator.values.offset_spec import AtTimestamp, AtTimestamps, Latest, NoMatch, OffsetSpec
from coordinator.values.option_kinds import DAY_MS, INT, LONG, Duration, Flag, Integer, Size, Text, Timestamp, Word
from coordinator.values.options import Option, option, option_fields, option_or, optional
from coordinator.values.ranges import HashRange
from coordinator.values.record_filter import EVERYTHING, Key, RecordFilter
from coordinator.values.subscription import Assigned, Pattern, Subscription, TopicPartition, Topics
from spark_coop_source.arrow_output.schema import EVERY, PLAIN
from spark_coop_source.fetch.read_options import ReadOptions
from spark_coop_source.function.error_policy import ErrorPolicy
from spark_coop_source.options.filter_values import KeyRangesText, KeysText
from spark_coop_source.options.function_values import FunctionText, RowSchema
from spark_coop_source.options.json_values import AssignmentText, OffsetsText, TimestampsText
from spark_coop_source.options.on_error_values import OnErrorText
from spark_coop_source.options.text_values import (
    AssignorNames,
    ColumnNames,
    GroupName,
    JoinedTopics,
    Labels,
    ListenerName,
    Ports,
    RedisUrl,
    SharingFlag,
    TopicNames,
    TopicPattern,
)

SharingMode = Literal["auto", "required", "partitions", "never"]
_SHARINGS: tuple[SharingMode, ...] = get_args(SharingMode)

STARTING = ("starting_timestamp", "starting_by_timestamp", "starting_offsets")
ENDING = ("ending_timestamp", "ending_by_timestamp", "ending_offsets")
"""The fields of start and end by rank, as in Spark's source: one time, a time for each partition, offsets."""
SUBSCRIPTION = ("subscribe", "subscribe_pattern", "assign")
SLOTS_MAX = 1_024


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions(MemberOptions, ReadOptions):
    """The checked options of a query. Times are milliseconds; picklable; `repr` shows no secret."""

    subscribe: Topics | None = optional("subscribe", TopicNames())
    subscribe_pattern: Pattern | None = optional("subscribePattern", TopicPattern())
    assign: Assigned | None = optional("assign", AssignmentText())
    include_headers: bool = option("includeHeaders", Flag(), "false")
    named_columns: tuple[str, ...] | None = optional("columns", ColumnNames())

    filter_ranges: tuple[HashRange, ...] | None = optional("filterKeyRanges", KeyRangesText())
    filter_allow: frozenset[Key] | None = optional("filterKeysAllow", KeysText(), hidden=True)
    filter_deny: frozenset[Key] | None = optional("filterKeysDeny", KeysText(), hidden=True)
    filter_least_bytes: int = option("filterRecordBytesMin", Size(0, INT), "0")
    filter_most_bytes: int | None = optional("filterRecordBytesMax", Size(0, INT))
    push_filters: bool = option("pushFilters", Flag(), "false")  # of a batch

    starting_timestamp: int | None = optional("startingTimestamp", Timestamp())
    starting_by_timestamp: Mapping[TopicPartition, int] | None = optional(
        "startingOffsetsByTimestamp", TimestampsText()
    )
    starting_offsets: OffsetSpec = option_or(Latest(), "startingOffsets", OffsetsText())
    starting_strategy: NoMatch = option("startingOffsetsByTimestampStrategy", Word(tuple(NoMatch)), NoMatch.ERROR)
    ending_timestamp: int | None = optional("endingTimestamp", Timestamp())
    ending_by_timestamp: Mapping[TopicPartition, int] | None = optional("endingOffsetsByTimestamp", TimestampsText())
    ending_offsets: OffsetSpec = option_or(Latest(), "endingOffsets", OffsetsText())

    max_offsets_per_trigger: int | None = optional("maxOffsetsPerTrigger", Integer(1, LONG))
    min_offsets_per_trigger: int | None = optional("minOffsetsPerTrigger", Integer(0, LONG))
    max_trigger_delay_ms: int = option("maxTriggerDelay", Duration(), "15m")
    min_partitions: int | None = optional("minPartitions", Integer(1, INT))
    max_records_per_partition: int | None = optional("maxRecordsPerPartition", Integer(1, LONG))

    group: str | None = optional(
        "group", GroupName(), also={"kafka.group.id": None}
    )  # None: a standalone stream or a batch
    redis_url: str | None = optional("redisUrl", RedisUrl(), secret=True, most=10_000)
    slots: int = option_or(1, "slots", Integer(1, SLOTS_MAX))
    assignor: str = option("assignor", AssignorNames(), "grouped")
    copartition: tuple[str, ...] = option_or((), "copartition", JoinedTopics())  # topics with the same lanes and owners
    listener: str | None = optional("ownershipListener", ListenerName())
    labels: Mapping[str, str] = option_or({}, "memberLabels", Labels())
    report_ports: range = option_or(range(1), "reportPort", Ports())  # port 0 is any free one
    sharing: SharingMode = option("sharing", Word(_SHARINGS), "auto", also={"allow.individual.commit": SharingFlag()})
    several_queries: bool = option("allowSeveralQueries", Flag(), "false")  # of one application, in one group
    redundancy: int = option("redundancy", Integer(1, 16), "1")  # number of replica sets
    # 4,096 lanes of one partition are four for each of 1,024 slots, and the largest number measured with the scripts
    # in Redis. The offset JSON has about 90 bytes for each.
    lanes: int | None = optional("lanes", Integer(1, 4_096))

    heartbeat_ms: int = option_or(
        3_000, "heartbeatInterval", Duration(600_000, 100), also={"kafka.heartbeat.interval.ms": None}
    )

    fetch_retries: int = option("fetchOffset.numRetries", Integer(0, INT), "3")
    fetch_retry_interval_ms: int = option("fetchOffset.retryIntervalMs", Duration(INT), "1s")
    group_id_prefix: str | None = optional("groupIdPrefix", Text())  # without effect
    cache_bytes: int = option("sharedCache", Size(), "200MiB", also={"max.bytes.key.range.cache": None})  # 0: none

    function: str | None = optional("function", FunctionText(), most=LONG, hidden=True)
    function_output: StructType | str | None = optional("functionSchema", RowSchema())
    timeout_ms: int | None = optional("functionTimeout", Duration(DAY_MS, least_ms=1))
    function_on_error: ErrorPolicy | None = optional("functionOnError", OnErrorText(), most=LONG, hidden=True)

    kafka: Mapping[str, object]  # for coordinator.kafka.client.client_arguments; `repr` hides secrets
    filter: RecordFilter = field(default=EVERYTHING, repr=False)  # it holds keys, which may be confidential
    notices: tuple[str, ...] = ()  # lines for the log, when the query starts
    given: frozenset[str] = field(default=frozenset(), compare=False)  # the fields that the user set

    @property
    def subscription(self) -> Subscription:
        """What is read: exactly one of these options is set."""
        return self.subscribe or self.subscribe_pattern or self.assign or Topics(())

    @property
    def pinned(self) -> bool:
        """Whether it names key ranges."""
        return self.assign is not None and self.assign.pinned

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a row."""
        return self.named_columns or (EVERY if self.include_headers else PLAIN)

    @property
    def starting(self) -> OffsetSpec:
        """The start."""
        if self.starting_timestamp is not None:
            return AtTimestamp(self.starting_timestamp, self.starting_strategy)
        if self.starting_by_timestamp is not None:
            return AtTimestamps(self.starting_by_timestamp, self.starting_strategy)
        return self.starting_offsets

    @property
    def ending(self) -> OffsetSpec:
        """The end of a batch; a time without a later record means latest."""
        if self.ending_timestamp is not None:
            return AtTimestamp(self.ending_timestamp, NoMatch.LATEST)
        if self.ending_by_timestamp is not None:
            return AtTimestamps(self.ending_by_timestamp, NoMatch.LATEST)
        return self.ending_offsets

    @property
    def standalone(self) -> bool:
        """Whether it reads without a group. Then positions are in the checkpoint only."""
        return self.group is None

    def names_given(self, fields: Iterable[str]) -> list[str]:
        """The names of the options among these fields that the user set."""
        return [OPTION_OF[each].name for each in fields if each in self.given]


OPTION_OF: Mapping[str, Option[Any]] = option_fields(SourceOptions)
"""All options but `kafka.*`, by the names of their fields."""
