"""Every option of the source but `kafka.*`, declared once: validation and docs/options.md come from here.

Names, defaults and meaning of the first three sections and of the last are those of Spark's Kafka source.
"""

import difflib

from coordinator.errors import UnknownOptionError
from coordinator.offset_spec import NoMatch
from spark_coop_source.json_values import Assignment, Offsets, Timestamps
from spark_coop_source.kafka_table import KAFKA_NAMES, REFUSED_FAMILIES
from spark_coop_source.option_values import INT, LONG, Duration, Flag, Integer, Option, Section, Text, Timestamp, Where
from spark_coop_source.option_values import Word as OneOf
from spark_coop_source.text_values import AssignorName, GroupName, RedisUrl, TopicNames, TopicPattern

_BOTH, _STREAM, _BATCH = Where.BOTH, Where.STREAM, Where.BATCH
_DAY_MS = 86_400_000

SUBSCRIBE = Option(
    "subscribe", TopicNames(), Section.WHAT, _BOTH,
    "The topics. Exactly one of `subscribe`, `subscribePattern` and `assign` is required.",
)  # fmt: skip
SUBSCRIBE_PATTERN = Option(
    "subscribePattern", TopicPattern(), Section.WHAT, _BOTH,
    "All topics in whose name the expression is found (use `^...$` for the whole name), also those created later.",
)  # fmt: skip
ASSIGN = Option(
    "assign", Assignment(), Section.WHAT, _BOTH,
    "Given partitions, in Spark's form or with key ranges. Without a group, a stream over them is standalone: "
    "no Redis, positions in the checkpoint only. With a group, it is an ordinary subscription of the group; "
    "key ranges are refused then, since the group itself says who reads which keys.",
)  # fmt: skip
INCLUDE_HEADERS = Option(
    "includeHeaders", Flag(), Section.WHAT, _BOTH, "Whether rows have the column `headers`.", "false"
)

STARTING_TIMESTAMP = Option(
    "startingTimestamp", Timestamp(), Section.START, _BOTH,
    "Start at the first record at or after this time in every partition. Goes before `startingOffsetsByTimestamp` "
    "and `startingOffsets`.",
)  # fmt: skip
STARTING_OFFSETS_BY_TIMESTAMP = Option(
    "startingOffsetsByTimestamp", Timestamps(), Section.START, _BOTH,
    "The same with a time for each partition; all partitions must be there. Goes before `startingOffsets`.",
)  # fmt: skip
STARTING_OFFSETS = Option(
    "startingOffsets", Offsets(), Section.START, _BOTH,
    "Where to start: a word, or an offset for each partition, all of them, with -2 for earliest and -1 for latest. "
    "A batch cannot start at latest. A stream uses it only for a group that has no positions yet; partitions found "
    "later start at earliest.",
    default_shown="latest for a stream, earliest for a batch",
)  # fmt: skip
STARTING_STRATEGY = Option(
    "startingOffsetsByTimestampStrategy", OneOf(tuple(NoMatch)), Section.START, _BOTH,
    "What to do where no record is at or after the starting time: fail, or start at latest.", NoMatch.ERROR,
)  # fmt: skip
ENDING_TIMESTAMP = Option(
    "endingTimestamp", Timestamp(), Section.START, _BATCH,
    "End before the first record at or after this time, at latest where there is none. Goes before "
    "`endingOffsetsByTimestamp` and `endingOffsets`. Refused for a stream.",
)  # fmt: skip
ENDING_OFFSETS_BY_TIMESTAMP = Option(
    "endingOffsetsByTimestamp", Timestamps(), Section.START, _BATCH,
    "The same with a time for each partition. Goes before `endingOffsets`. Refused for a stream.",
)  # fmt: skip
ENDING_OFFSETS = Option(
    "endingOffsets", Offsets(), Section.START, _BATCH,
    "Where to end, exclusive: latest, or an offset for each partition with -1 for latest; earliest and -2 are "
    "refused. Refused for a stream.",
    default_shown="latest",
)  # fmt: skip

MAX_OFFSETS = Option(
    "maxOffsetsPerTrigger", Integer(1, LONG), Section.RATE, _STREAM,
    "The most offsets of one micro-batch, over all partitions; an offset counts by the share of the hash space read.",
)  # fmt: skip
MIN_OFFSETS = Option(
    "minOffsetsPerTrigger", Integer(0, LONG), Section.RATE, _STREAM,
    "Wait until this many offsets are there, or `maxTriggerDelay` is over. Not above `maxOffsetsPerTrigger`.",
)  # fmt: skip
MAX_DELAY = Option(
    "maxTriggerDelay", Duration(), Section.RATE, _STREAM, "The longest wait for `minOffsetsPerTrigger`.", "15m"
)
MIN_PARTITIONS = Option(
    "minPartitions", Integer(1, INT), Section.RATE, _BOTH,
    "Wish for at least this many Spark tasks. Partitions are cut by key hash, so order within a key is kept.",
)  # fmt: skip
MAX_RECORDS_PER_PARTITION = Option(
    "maxRecordsPerPartition", Integer(1, LONG), Section.RATE, _BOTH,
    "Wish for at most this many records in a Spark task. Cuts by key hash, as `minPartitions`.",
)  # fmt: skip

GROUP = Option(
    "group", GroupName(), Section.GROUP, _STREAM,
    "The group whose members share the topics, the same as `kafka.group.id`. Required for a stream that is not "
    "standalone; a batch needs none and ignores it.",
)  # fmt: skip
REDIS_URL = Option(
    "redis.url", RedisUrl(), Section.GROUP, _STREAM,
    "The Redis or Valkey that holds the group's state. Required with `group`; a batch ignores it.", secret=True,
)  # fmt: skip
SLOTS = Option(
    "slots", Integer(1, 1_024), Section.GROUP, _BOTH,
    "How many Spark tasks this application runs at once.", default_shown="the cores of the driver's host",
)  # fmt: skip
CAPACITY = Option(
    "capacity", Integer(1, 1_000_000), Section.GROUP, _STREAM,
    "How much of the group's work this application wants, in proportion to the other members'.",
    default_shown="`slots`",
)  # fmt: skip
ASSIGNOR = Option(
    "assignor", AssignorName(), Section.GROUP, _STREAM,
    "Who gets which key ranges: grouped (sticky, whole partitions first, in proportion to capacity), Kafka's range and "
    "roundrobin, which split partitions when members outnumber them, copartitioned (topics of equal partition counts "
    "get the same owners), or a class of your own. The same for all members.", "grouped",
)  # fmt: skip
SEVERAL_QUERIES = Option(
    "allow.several.queries", Flag(), Section.GROUP, _STREAM,
    "Whether queries of one application may be members of one group; otherwise a second one is refused.", "false",
)  # fmt: skip
# 4,096 lanes of one partition are four for each of 1,024 slots, and the most that the scripts in Redis
# were measured with; the offset JSON holds about 90 bytes for each.
LANES = Option(
    "lanes", Integer(1, 4_096), Section.GROUP, _BOTH,
    "A fixed number of lanes for every partition.", default_shown="as many as the slots need",
)  # fmt: skip

SESSION = Option(
    "session.timeout.ms", Integer(1_000, 1_800_000), Section.TIMES, _STREAM,
    "How long a member may be silent before its key ranges may go to another.", "45000",
)  # fmt: skip
HEARTBEAT = Option(
    "heartbeat.interval.ms", Integer(100, 1_800_000), Section.TIMES, _STREAM,
    "How often a member renews its lease. Below `session.timeout.ms`, and best at most a third of it.",
    default_shown="3000, or a third of `session.timeout.ms` if that is less",
)  # fmt: skip
LONGEST_BATCH = Option(
    "longest.batch.ms", Integer(1_000, INT), Section.TIMES, _STREAM,
    "How long a micro-batch may take before the member's key ranges may go to another.", "300000",
)  # fmt: skip
RETENTION = Option(
    "offsets.retention.minutes", Integer(1, INT), Section.TIMES, _STREAM,
    "How long an empty group is kept (Kafka's rule since KIP-211).", "10080",
)  # fmt: skip
MAX_OUTAGE = Option(
    "redis.max.outage", Duration(_DAY_MS), Section.TIMES, _STREAM,
    "How long Redis may be away before the query fails; commits wait until then.", "60s",
)  # fmt: skip
ON_STATE_LOSS = Option(
    "onStateLoss", OneOf(("fail", "earliest")), Section.TIMES, _STREAM,
    "What to do when Redis lost the group's state and nothing proves a position.", "fail",
)  # fmt: skip

FAIL_ON_DATA_LOSS = Option(
    "failOnDataLoss", Flag(), Section.READ, _BOTH,
    "Fail when records were lost before they were read (retention, a deleted topic), or go on behind them.", "true",
)  # fmt: skip
FETCH_RETRIES = Option(
    "fetchOffset.numRetries", Integer(0, INT), Section.READ, _BOTH, "How often the driver asks Kafka again.", "3"
)
FETCH_RETRY_INTERVAL = Option(
    "fetchOffset.retryIntervalMs", Integer(0, INT), Section.READ, _BOTH,
    "The pause between two such attempts, in milliseconds.", "1000",
)  # fmt: skip
POLL_TIMEOUT = Option(
    "kafkaConsumer.pollTimeoutMs", Integer(1, INT), Section.READ, _BOTH,
    "How long a task waits for records that the log is known to hold, in milliseconds.", "120000",
)  # fmt: skip
GROUP_ID_PREFIX = Option(
    "groupIdPrefix", Text(), Section.READ, _BOTH,
    "Accepted, without effect: tasks join no Kafka group, so no group id is generated.",
)  # fmt: skip

OPTIONS: tuple[Option[object], ...] = (
    SUBSCRIBE, SUBSCRIBE_PATTERN, ASSIGN, INCLUDE_HEADERS,
    STARTING_TIMESTAMP, STARTING_OFFSETS_BY_TIMESTAMP, STARTING_OFFSETS, STARTING_STRATEGY,
    ENDING_TIMESTAMP, ENDING_OFFSETS_BY_TIMESTAMP, ENDING_OFFSETS,
    MAX_OFFSETS, MIN_OFFSETS, MAX_DELAY, MIN_PARTITIONS, MAX_RECORDS_PER_PARTITION,
    GROUP, REDIS_URL, SLOTS, CAPACITY, ASSIGNOR, SEVERAL_QUERIES, LANES,
    SESSION, HEARTBEAT, LONGEST_BATCH, RETENTION, MAX_OUTAGE, ON_STATE_LOSS,
    FAIL_ON_DATA_LOSS, FETCH_RETRIES, FETCH_RETRY_INTERVAL, POLL_TIMEOUT, GROUP_ID_PREFIX,
)  # fmt: skip
"""All options but `kafka.*`, in the order of the docs."""

NAMES = {option.name.lower(): option.name for option in OPTIONS} | {
    f"kafka.{name}": f"kafka.{name}" for name in KAFKA_NAMES
}
"""Every known name, by its lower-case form, as the docs spell it."""

# Spark adds the first two for load(path), the next two for CREATE TABLE (measured on PySpark 4.3);
# the last is an option of Spark's Kafka sink.
_TABLE = "use CREATE TEMPORARY VIEW ... USING instead of CREATE TABLE: Spark hands a table's options on to no reader"
_MISPLACED = {
    "path": "call load() without a path: topics are named by the option subscribe",
    "paths": "call load() without paths: topics are named by the option subscribe",
    "owner": _TABLE,
    "provider": _TABLE,
    "topic": "topics to read are named by the option subscribe; topic is for writing with Spark's Kafka sink",
}


def check_name(name: str) -> None:
    """Raise `UnknownOptionError` for a name (any case) that is in no table, suggesting the nearest one."""
    given = name.lower()
    if given in NAMES or given.removeprefix("kafka.").startswith(tuple(REFUSED_FAMILIES)):
        return
    remedy = _TABLE if given.startswith("option.") else _MISPLACED.get(given)
    if remedy is None:
        near = _nearest(given)
        remedy = f"did you mean {near}" if near else "see docs/options.md for the options there are"
    raise UnknownOptionError(f"there is no option {name}", remedy)


def _nearest(given: str) -> str | None:
    """The known name that looks most like it; one of Kafka's without the prefix counts, which says nothing itself."""
    if f"kafka.{given}" in NAMES:
        return NAMES[f"kafka.{given}"]
    prefix = "kafka." if given.startswith("kafka.") else ""
    names = KAFKA_NAMES if prefix else NAMES
    near = difflib.get_close_matches(given.removeprefix(prefix), names, 1, 0.55)
    return NAMES[prefix + near[0]] if near else None
