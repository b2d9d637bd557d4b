"""Every option of the source but `kafka.*`, declared once: validation and docs/options.md come from here.

Names, defaults and meaning of the first three sections and of "How it is read" are those of Spark's Kafka source.
"""

from coordinator.offset_spec import NoMatch
from spark_coop_source.options.function_values import FunctionText, RowSchema
from spark_coop_source.options.json_values import Assignment, Offsets, Timestamps
from spark_coop_source.options.text_values import (
    AssignorNames,
    ColumnNames,
    GroupName,
    Labels,
    ListenerName,
    RedisUrl,
    TopicNames,
    TopicPattern,
)
from spark_coop_source.options.values import INT, LONG, Duration, Flag, Integer, Option, Section, Text, Timestamp, Where
from spark_coop_source.options.values import Word as OneOf

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
COLUMNS = Option(
    "columns", ColumnNames(), Section.WHAT, _BOTH,
    "The columns of a row; those that are not named are not there, and cost nothing. Not with `mapInRead`, nor with "
    "`includeHeaders`: name `headers` among them.",
    default_shown="all but `headers`",
)  # fmt: skip

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
    "Wish for at most this many records in a Spark task. Cuts by key hash, as `minPartitions`. The wish ends at about "
    "4,096 lanes in a partition and 65,536 in a batch.",
)  # fmt: skip

GROUP = Option(
    "group", GroupName(), Section.GROUP, _STREAM,
    "The group whose members share the topics, the same as `kafka.group.id`. Required for a stream that is not "
    "standalone; a batch needs none and ignores it.",
)  # fmt: skip
REDIS_URL = Option(
    "redis.url", RedisUrl(), Section.GROUP, _STREAM,
    "The Redis or Valkey that holds the group's state. Required with `group`; a batch ignores it.", secret=True,
    most=10_000,
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
    "assignor", AssignorNames(), Section.GROUP, _STREAM,
    "Who gets which key ranges: grouped (sticky, whole partitions first, in proportion to capacity), Kafka's range and "
    "roundrobin, which split partitions when members outnumber them, copartitioned (topics of equal partition counts "
    "get the same owners), or a class of your own as module:Class. Several by preference, separated by commas: the "
    "group uses one that all its members name, so that it is changed by rolling restarts. See docs/assignors.md.",
    "grouped",
)  # fmt: skip
LABELS = Option(
    "member.labels", Labels(), Section.GROUP, _STREAM,
    "What this application says of itself, for assignors and for people, as zone=a,team=core. Host, process id and "
    "`kafka.client.rack` are said anyway.",
)  # fmt: skip
LISTENER = Option(
    "ownership.listener", ListenerName(), Section.GROUP, _STREAM,
    "Told, beside the driver, which key ranges this application was assigned, gave up in order, or lost. "
    "See docs/operations.md.",
)  # fmt: skip
SHARING = Option(
    "allow.individual.commit", Flag(), Section.GROUP, _STREAM,
    "Whether this application may be given parts of partitions. false: whole partitions or nothing, which never "
    "starves one that shares. true: the query fails at its start where a policy of the group or of a topic forbids "
    "it. See docs/policies.md.", default_shown="true where policies allow it",
)  # fmt: skip
SEVERAL_QUERIES = Option(
    "allow.several.queries", Flag(), Section.GROUP, _STREAM,
    "Whether queries of one application may be members of one group. false: a second query is refused with "
    "`GROUP_BUSY`. Two reads of one query (two `load()`s in a union or a join, both sides of a self-join) are refused "
    "either way: give each read a group of its own.", "false",
)  # fmt: skip
UNREAD_BATCHES = Option(
    "allow.unread.batches", Flag(), Section.GROUP, _STREAM,
    "Whether a batch that Spark completes without reading it counts as done. false: the query ends with "
    "`SINK_SKIPPED_BATCH`. true: for a query that drops records unread on purpose, as `limit(0)` does.", "false",
)  # fmt: skip
MAX_RANGES = Option(
    "max.num.ranges.to.commit", Integer(1, 60_000), Section.GROUP, _STREAM,
    "How many offset ranges an acknowledger of the Commit API collects before it commits by itself.", "10000",
)  # fmt: skip
MAX_INDIVIDUAL_COMMITS = Option(
    "max.individual.commits", Integer(1, 100_000), Section.GROUP, _STREAM,
    "How many individual commits a partition may hold. At this many, only lanes at the stable offset and gaps are "
    "read, and commits that would add one are refused. The same for all members.", "10000",
)  # fmt: skip
# 4,096 lanes of one partition are four for each of 1,024 slots, and the most that the scripts in Redis
# were measured with; the offset JSON holds about 90 bytes for each.
LANES = Option(
    "lanes", Integer(1, 4_096), Section.GROUP, _BOTH,
    "A fixed number of lanes for every partition; fewer where a batch would have more than 65,536.",
    default_shown="as many as the slots need",
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
BATCH_BUDGET = Option(
    "batch.time.budget", Duration(_DAY_MS), Section.TIMES, _STREAM,
    "How long a micro-batch should take: each lane reads no more than it can do in this time, so that a slow key "
    "holds up only itself. At least one record, whatever it takes; `0` reads all there is.", "10s",
)  # fmt: skip
MAX_LANE_LEAD = Option(
    "max.lane.lead", Duration(_DAY_MS), Section.TIMES, _STREAM,
    "How far a lane may be ahead of the one furthest behind in the same query, in the time of records; with event time "
    "at most the delay of the watermark. See docs/slow-keys.md.", default_shown="as far as the log goes",
)  # fmt: skip
RETENTION = Option(
    "offsets.retention.minutes", Integer(1, INT), Section.TIMES, _STREAM,
    "How long an empty group is kept (Kafka's rule since KIP-211).", "10080",
)  # fmt: skip
MAX_OUTAGE = Option(
    "redis.max.outage", Duration(_DAY_MS), Section.TIMES, _STREAM,
    "How long Redis may be away before the query fails; commits wait until then.", "60s",
)  # fmt: skip
GROWTH_GRACE = Option(
    "partition.growth.grace", Duration(_DAY_MS), Section.TIMES, _STREAM,
    "How long after the group saw a topic grow a new partition waits for the older ones, hash by hash, so that a key "
    "that moved there stays in order: longer than producers take to learn of it (`metadata.max.age.ms`, 5 minutes by "
    "default). The member that sees the growth first decides for the group. 0 switches the rule off.", "10m",
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
CACHE_BYTES = Option(
    "max.bytes.key.range.cache", Integer(0, LONG), Section.CACHE, _BOTH,
    "How much shared memory the tasks of a host may use, all queries of a user together, to fetch once what several "
    "of them read. 0: each fetches for itself.", "209715200",
)  # fmt: skip
MOST_UNFILTERED = Option(
    "max.bytes.fetcher.filtering", Integer(65_536, LONG), Section.READ, _BOTH,
    "How many bytes a task may hold that it has fetched and not yet looked through: the answer in work, the next one, "
    "and what is decoded of the first. Answers are at most a quarter of it, whatever `kafka.fetch.max.bytes` says; a "
    "record batch that is larger comes alone. A record of a compressed batch must fit into it, or into 16 MiB.",
    "104857600",
)  # fmt: skip
MOST_UNCOMPRESSED = Option(
    "max.batch.uncompressed.bytes", Integer(65_536, LONG), Section.READ, _BOTH,
    "How many bytes a compressed record batch may hold once it is decompressed. A task decodes a batch in pieces of 4 "
    "MiB, so this bounds its work and not its memory. A batch that holds more fails the task with BATCH_TOO_LARGE; "
    "with `failOnDataLoss=false` the task skips it and logs a warning. See [reading.md](reading.md).", "1073741824",
)  # fmt: skip
GROUP_ID_PREFIX = Option(
    "groupIdPrefix", Text(), Section.READ, _BOTH,
    "Accepted, without effect: tasks join no Kafka group, so no group id is generated.",
)  # fmt: skip

MAP_IN_READ = Option(
    "mapInRead", FunctionText(), Section.FUNCTION, _BOTH, most=LONG, meaning=
    "A function from Arrow batches to Arrow batches that tasks run on what they read: pickled, or `module:function` "
    "as executors can import it. The query's rows are what it makes. See [map-in-read.md](map-in-read.md).",
)  # fmt: skip
MAP_IN_READ_SCHEMA = Option(
    "mapInRead.schema", RowSchema(), Section.FUNCTION, _BOTH,
    "The columns that the function makes. Required with `mapInRead`.",
)  # fmt: skip
MAP_IN_READ_PER_KEY = Option(
    "mapInRead.perKey", Flag(), Section.FUNCTION, _BOTH,
    "Whether the function is called with one key and some of its records, instead of once with an iterator of all "
    "batches.", "false",
)  # fmt: skip
MAP_IN_READ_CONCURRENCY = Option(
    "mapInRead.concurrency", Integer(1, 1_024), Section.FUNCTION, _BOTH,
    "How many keys a task works on at once, by threads, each key in order. Above 1 only with `mapInRead.perKey`.", "1",
)  # fmt: skip

OPTIONS: tuple[Option[object], ...] = (
    SUBSCRIBE, SUBSCRIBE_PATTERN, ASSIGN, INCLUDE_HEADERS, COLUMNS,
    STARTING_TIMESTAMP, STARTING_OFFSETS_BY_TIMESTAMP, STARTING_OFFSETS, STARTING_STRATEGY,
    ENDING_TIMESTAMP, ENDING_OFFSETS_BY_TIMESTAMP, ENDING_OFFSETS,
    MAX_OFFSETS, MIN_OFFSETS, MAX_DELAY, MIN_PARTITIONS, MAX_RECORDS_PER_PARTITION,
    GROUP, REDIS_URL, SLOTS, CAPACITY, ASSIGNOR, LISTENER, LABELS, SHARING, SEVERAL_QUERIES, UNREAD_BATCHES,
    MAX_RANGES, MAX_INDIVIDUAL_COMMITS, LANES,
    SESSION, HEARTBEAT, LONGEST_BATCH, BATCH_BUDGET, MAX_LANE_LEAD, RETENTION, MAX_OUTAGE, GROWTH_GRACE, ON_STATE_LOSS,
    FAIL_ON_DATA_LOSS, FETCH_RETRIES, FETCH_RETRY_INTERVAL, POLL_TIMEOUT, MOST_UNFILTERED, MOST_UNCOMPRESSED,
    CACHE_BYTES, GROUP_ID_PREFIX,
    MAP_IN_READ, MAP_IN_READ_SCHEMA, MAP_IN_READ_PER_KEY, MAP_IN_READ_CONCURRENCY,
)  # fmt: skip
"""All options but `kafka.*`, in the order of the docs."""
