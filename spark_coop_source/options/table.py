"""Every option of the source but `kafka.*`. Validation and docs/options.md use these declarations.

Names, defaults and meaning of the first three sections and of "How it is read" are those of Spark's Kafka source.
"""

from coordinator.values.offset_spec import NoMatch
from spark_coop_source.options.filter_values import KeyRanges, Keys
from spark_coop_source.options.function_values import FunctionText, RowSchema
from spark_coop_source.options.json_values import Assignment, Offsets, Timestamps
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
    "All topics whose name contains a match (use `^...$` for the whole name), including topics created later. In a "
    "cluster with many thousands of topics a query finds a new one after some seconds: it looks for new topics for at "
    "most a fortieth of the time.",
)  # fmt: skip
ASSIGN = Option(
    "assign", Assignment(), Section.WHAT, _BOTH,
    "Fixed partitions, in Spark's form or with key ranges. Without a group, a stream over them is standalone: "
    "no Redis, positions in the checkpoint only. With a group, Spark's form is an ordinary subscription. The form with "
    "key ranges pins the member to them: see docs/getting-started.md.",
)  # fmt: skip
INCLUDE_HEADERS = Option(
    "includeHeaders", Flag(), Section.WHAT, _BOTH, "Whether rows have the column `headers`.", "false"
)
COLUMNS = Option(
    "columns", ColumnNames(), Section.WHAT, _BOTH,
    "The columns of a row. Other columns are not built, and cost nothing. Not with `map.in.read`. Not with "
    "`includeHeaders`: name `headers` here instead. `acknowledgement` needs a stream with a group: see "
    "[commit-api.md](commit-api.md).",
    default_shown="all but `headers` and `acknowledgement`",
)  # fmt: skip

FILTER_RANGES = Option(
    "filter.key.ranges", KeyRanges(), Section.FILTER, _BOTH,
    "Only records whose key hash lies in these ranges. A record without a key has the hash of its offset. Records that "
    "a filter drops count as done. See [filters](reading.md#filters).", default_shown="the whole hash space",
)  # fmt: skip
FILTER_ALLOW = Option(
    "filter.keys.allow", Keys(), Section.FILTER, _BOTH,
    "Only records with these keys. A record without a key passes only if `null` is among them.",
    default_shown="any key",
)  # fmt: skip
FILTER_DENY = Option(
    "filter.keys.deny", Keys(), Section.FILTER, _BOTH,
    "No records with these keys. A record without a key passes unless `null` is among them.",
)  # fmt: skip
FILTER_LEAST_BYTES = Option(
    "filter.record.bytes.min", Integer(0, INT), Section.FILTER, _BOTH,
    "Only records of at least this size: the bytes of key and value as they are in the record. A null has none. "
    "Headers do not count.", "0",
)  # fmt: skip
FILTER_MOST_BYTES = Option(
    "filter.record.bytes.max", Integer(0, INT), Section.FILTER, _BOTH,
    "Only records of at most this size. At least `filter.record.bytes.min`.", default_shown="no limit",
)  # fmt: skip

PUSH_FILTERS = Option(
    "push.filters", Flag(), Section.FILTER, _BATCH,
    "Whether `spark.read` reads only what Spark's own filters on partition, offset, key and timestamp leave. Needs "
    "`spark.sql.python.filterPushdown.enabled=true`, else Spark fails with DATA_SOURCE_PUSHDOWN_DISABLED. Not with "
    "`map.in.read`. See [filters](reading.md#sparks-own-filters).", "false",
)  # fmt: skip

STARTING_TIMESTAMP = Option(
    "startingTimestamp", Timestamp(), Section.START, _BOTH,
    "Start at the first record at or after this time in every partition. Overrides `startingOffsetsByTimestamp` "
    "and `startingOffsets`.",
)  # fmt: skip
STARTING_OFFSETS_BY_TIMESTAMP = Option(
    "startingOffsetsByTimestamp", Timestamps(), Section.START, _BOTH,
    "The same with a time for each partition. It must name all partitions. Overrides `startingOffsets`.",
)  # fmt: skip
STARTING_OFFSETS = Option(
    "startingOffsets", Offsets(), Section.START, _BOTH,
    "The start: a word, or an offset for every partition, with -2 for earliest and -1 for latest. "
    "A batch cannot start at latest. A stream uses it only for a group without positions. Partitions that appear "
    "later start at earliest.",
    default_shown="latest for a stream, earliest for a batch",
)  # fmt: skip
STARTING_STRATEGY = Option(
    "startingOffsetsByTimestampStrategy", OneOf(tuple(NoMatch)), Section.START, _BOTH,
    "If no record is at or after the starting time: fail, or start at latest.", NoMatch.ERROR,
)  # fmt: skip
ENDING_TIMESTAMP = Option(
    "endingTimestamp", Timestamp(), Section.START, _BATCH,
    "End before the first record at or after this time; without such a record, at latest. Overrides "
    "`endingOffsetsByTimestamp` and `endingOffsets`. A stream refuses it.",
)  # fmt: skip
ENDING_OFFSETS_BY_TIMESTAMP = Option(
    "endingOffsetsByTimestamp", Timestamps(), Section.START, _BATCH,
    "The same with a time for each partition. Overrides `endingOffsets`. A stream refuses it.",
)  # fmt: skip
ENDING_OFFSETS = Option(
    "endingOffsets", Offsets(), Section.START, _BATCH,
    "The end, exclusive: latest, or an offset for each partition with -1 for latest. It refuses earliest and -2. "
    "A stream refuses it.",
    default_shown="latest",
)  # fmt: skip

MAX_OFFSETS = Option(
    "maxOffsetsPerTrigger", Integer(1, LONG), Section.RATE, _STREAM,
    "The most offsets of one micro-batch, over all partitions. An offset counts by the share of the hash space read.",
)  # fmt: skip
MIN_OFFSETS = Option(
    "minOffsetsPerTrigger", Integer(0, LONG), Section.RATE, _STREAM,
    "Wait for this many new offsets, or until `maxTriggerDelay` is over. At most `maxOffsetsPerTrigger`.",
)  # fmt: skip
MAX_DELAY = Option(
    "maxTriggerDelay", Duration(), Section.RATE, _STREAM, "The longest wait for `minOffsetsPerTrigger`.", "15m"
)
MIN_PARTITIONS = Option(
    "minPartitions", Integer(1, INT), Section.RATE, _BOTH,
    "The wanted minimum of Spark tasks. Partitions are cut by key hash, so the order within a key is kept.",
)  # fmt: skip
MAX_RECORDS_PER_PARTITION = Option(
    "maxRecordsPerPartition", Integer(1, LONG), Section.RATE, _BOTH,
    "The wanted maximum of records in a Spark task. Cuts by key hash, as `minPartitions`, up to about 4,096 lanes in a "
    "partition and 65,536 in a batch.",
)  # fmt: skip

GROUP = Option(
    "group", GroupName(), Section.GROUP, _STREAM,
    "The group whose members share the topics, the same as `kafka.group.id`. Required for a stream that is not "
    "standalone. A batch ignores it.",
)  # fmt: skip
REDIS_URL = Option(
    "redis.url", RedisUrl(), Section.GROUP, _STREAM,
    "The Redis or Valkey with the group's state. Required with `group`. A batch ignores it.", secret=True,
    most=10_000,
)  # fmt: skip
SLOTS = Option(
    "slots", Integer(1, 1_024), Section.GROUP, _BOTH,
    "The number of Spark tasks that this application runs at once.", default_shown="the cores that the driver may use",
)  # fmt: skip
CAPACITY = Option(
    "capacity", Integer(1, 1_000_000), Section.GROUP, _STREAM,
    "This application's share of the group's work, relative to the capacity of the other members.",
    default_shown="`slots`",
)  # fmt: skip
ASSIGNOR = Option(
    "assignor", AssignorNames(), Section.GROUP, _STREAM,
    "The rule that assigns key ranges to members. grouped: sticky, whole partitions first, in proportion to capacity. "
    "range and roundrobin: Kafka's; they split partitions when members outnumber them. copartitioned: topics of equal "
    "partition counts and equal subscribers get the same owners. rack-aware: as grouped, and members prefer partitions "
    "whose leader is in their rack. module:Class: a class of your own. Several names, separated by commas, are in "
    "order of preference: the group uses one that all its members name, so a rolling restart can change it. See "
    "docs/assignors.md.",
    "grouped",
)  # fmt: skip
COPARTITION = Option(
    "copartition", JoinedTopics(), Section.GROUP, _BOTH,
    "Topics that a function or a query joins by key. Partition i of each has the same lanes and the same owner, and "
    "one task reads the same keys of all of them. They need equal numbers of partitions (`NOT_COPARTITIONED`). All "
    "members of the group need the same value. Not with `assign`, `assignor` and `maxRecordsPerPartition`. See "
    "docs/joins.md.",
)  # fmt: skip
LABELS = Option(
    "member.labels", Labels(), Section.GROUP, _STREAM,
    "Labels of this application for assignors and operators, as zone=a,team=core. The member reports host, process id "
    "and `kafka.client.rack` without them.",
)  # fmt: skip
LISTENER = Option(
    "ownership.listener", ListenerName(), Section.GROUP, _STREAM,
    "A class that is called in the reader process beside the driver, when this application acquires, releases or loses "
    "key ranges. See docs/operations.md.",
)  # fmt: skip
REPORT_PORT = Option(
    "report.port", Ports(), Section.GROUP, _STREAM,
    "The TCP port of the driver's host to which tasks connect, to report costs and ends. A range: the first free port "
    "of it. Each query needs a port of its own.", default_shown="any free port",
)  # fmt: skip
SHARING = Option(
    "allow.individual.commit", Flag(), Section.GROUP, _STREAM,
    "Whether this application may own parts of partitions. false: it owns whole partitions only; members that share "
    "still get work. true: the query fails at its start if a policy of the group or of a topic forbids it. See "
    "docs/policies.md.", default_shown="true where policies allow it",
)  # fmt: skip
SEVERAL_QUERIES = Option(
    "allow.several.queries", Flag(), Section.GROUP, _STREAM,
    "Whether queries of one application may be members of one group. false: a second query fails with "
    "`GROUP_BUSY`. Two reads of one query (two `load()`s in a union or a join, both sides of a self-join) fail "
    "with either value: use a separate group for each read, or `copartition`.", "false",
)  # fmt: skip
REDUNDANCY = Option(
    "redundancy", Integer(1, 16), Section.GROUP, _STREAM,
    "How many members read each record. 2: the members form two replica sets, each of which reads everything, and has "
    "positions of its own. See docs/redundancy.md.", "1",
)  # fmt: skip
STANDBY = Option(
    "standby", Flag(), Section.GROUP, _STREAM,
    "Whether this query is a standby: it owns nothing while enough others work, and takes over when one is lost. Not "
    "for a batch, nor with AvailableNow, key ranges in `assign`, `copartition`, `redundancy` or `ordering=none`. See "
    "docs/redundancy.md.", "false",
)  # fmt: skip
ORDERING = Option(
    "ordering", OneOf(("key", "none")), Section.GROUP, _STREAM,
    "What the group keeps in order. key: the records of each key. none: nothing; members then share partitions by "
    "offsets, and a slow key holds up no lane. All members need the same value. An empty group takes over the value "
    "of the next member. See docs/without-order.md.", "key",
)  # fmt: skip
UNREAD_BATCHES = Option(
    "allow.unread.batches", Flag(), Section.GROUP, _STREAM,
    "Whether a batch that Spark completes without reading it counts as done. false: the query fails with "
    "`SINK_SKIPPED_BATCH`. true: for a query that drops records unread on purpose, as `limit(0)` does.", "false",
)  # fmt: skip
REPLAY_ACKNOWLEDGED = Option(
    "replay.acknowledged", Flag(), Section.GROUP, _STREAM,
    "Whether a batch that Spark replays after a restart has the records again that were acknowledged before. false: it "
    "has only the others, so the batch is not the same as before. See [commit-api.md](commit-api.md#replays).", "true",
)  # fmt: skip
MAX_RANGES = Option(
    "max.num.ranges.to.commit", Integer(1, 60_000), Section.GROUP, _STREAM,
    "The most offset ranges that an acknowledger of the Commit API collects before it commits by itself.", "10000",
)  # fmt: skip
MAX_INDIVIDUAL_COMMITS = Option(
    "max.individual.commits", Integer(1, 100_000), Section.GROUP, _STREAM,
    "The most individual commits of a partition. At this limit, the group reads only lanes at the stable offset and "
    "gaps, and refuses commits that would add one. Each member applies its own value.", "10000",
)  # fmt: skip
MAX_DEFERRED_KEYS = Option(
    "max.deferred.keys", Integer(1, 100_000), Section.GROUP, _STREAM,
    "The most failing keys of a partition, deferred or parked. At this limit, the group reads only these keys of the "
    "partition until there are fewer. Each member applies its own value. See docs/failing-records.md.", "10000",
)  # fmt: skip
# 4,096 lanes of one partition are four for each of 1,024 slots, and the largest number measured with the scripts in
# Redis. The offset JSON has about 90 bytes for each.
LANES = Option(
    "lanes", Integer(1, 4_096), Section.GROUP, _BOTH,
    "A fixed number of lanes for every partition. A batch has at most 65,536, so they may be fewer.",
    default_shown="as many as the slots need",
)  # fmt: skip

SESSION = Option(
    "session.timeout.ms", Integer(1_000, 1_800_000), Section.TIMES, _STREAM,
    "If a member does not renew its lease for this time, others may take its key ranges.", "45000",
)  # fmt: skip
HEARTBEAT = Option(
    "heartbeat.interval.ms", Integer(100, 1_800_000), Section.TIMES, _STREAM,
    "The interval at which a member renews its lease. Below `session.timeout.ms`; at most a third of it is best.",
    default_shown="3000, or a third of `session.timeout.ms` if that is less",
)  # fmt: skip
LONGEST_BATCH = Option(
    "longest.batch.ms", Integer(1_000, INT), Section.TIMES, _STREAM,
    "If tasks of a micro-batch read for longer, others may take the member's key ranges.", "300000",
)  # fmt: skip
GAP_MAX_WAIT = Option(
    "gap.max.wait.ms", Integer(1_000, INT), Section.TIMES, _STREAM,
    "Only with `ordering=none`: the length of this member's lease. If the member gives no sign of life for this time, "
    "others read its slices.",
    default_shown="`session.timeout.ms`",
)  # fmt: skip
BATCH_BUDGET = Option(
    "batch.time.budget", Duration(_DAY_MS), Section.TIMES, _STREAM,
    "The intended time of a micro-batch. Each lane reads only as much as fits, so a slow key delays only itself. A "
    "lane reads at least one record, even if that takes longer. `0`: no limit.", "10s",
)  # fmt: skip
MAX_LANE_LEAD = Option(
    "max.lane.lead", Duration(_DAY_MS), Section.TIMES, _STREAM,
    "How far a lane may be ahead of the last lane of the same query, by the timestamps of records. With event time, "
    "set at most the delay of the watermark. See docs/slow-keys.md.", default_shown="no limit",
)  # fmt: skip
RETENTION = Option(
    "offsets.retention.minutes", Integer(1, INT), Section.TIMES, _STREAM,
    "Redis keeps the state of a group without members, and of a topic without subscribers, for this time (KIP-211). "
    "The longest time of the group's members counts.",
    "10080",
)  # fmt: skip
MAX_OUTAGE = Option(
    "redis.max.outage", Duration(_DAY_MS), Section.TIMES, _STREAM,
    "The query fails if Redis is unreachable for longer. Commits wait until then.", "60s",
)  # fmt: skip
KAFKA_MAX_OUTAGE = Option(
    "kafkaMaxOutage", Duration(_DAY_MS), Section.TIMES, _BOTH,
    "The query fails if Kafka, or the leader of a partition, does not answer for longer; at the first contact after 60 "
    "seconds. Until then the records of that partition wait, and all others are read.", "5m",
)  # fmt: skip
GROWTH_GRACE = Option(
    "partition.growth.grace", Duration(_DAY_MS), Section.TIMES, _STREAM,
    "After a topic [grows](growth.md), each hash range of a new partition waits for the same range of the older "
    "partitions. So a key that moved there stays in order. It waits for records that were written up to this time "
    "after the growth: set more than the producers' `metadata.max.age.ms` (5 minutes by default). The longest grace of "
    "the group's members counts. 0: new partitions do not wait.", "10m",
)  # fmt: skip
ON_STATE_LOSS = Option(
    "on.state.loss", OneOf(("fail", "earliest")), Section.TIMES, _STREAM,
    "If Redis lost the group's state and nothing proves a position: fail, or start at earliest. The member that "
    "recovers the group decides.", "fail",
)  # fmt: skip

FAIL_ON_DATA_LOSS = Option(
    "failOnDataLoss", Flag(), Section.READ, _BOTH,
    "If records were lost before they were read (retention, a deleted topic): true fails, false skips them. "
    "In a group, the member that finds the loss decides.", "true",
)  # fmt: skip
FETCH_RETRIES = Option(
    "fetchOffset.numRetries",
    Integer(0, INT),
    Section.READ,
    _BOTH,
    "How often the driver retries a request to Kafka.",
    "3",
)
FETCH_RETRY_INTERVAL = Option(
    "fetchOffset.retryIntervalMs", Integer(0, INT), Section.READ, _BOTH,
    "The pause between two such requests, in milliseconds.", "1000",
)  # fmt: skip
POLL_TIMEOUT = Option(
    "kafkaConsumer.pollTimeoutMs", Integer(1, INT), Section.READ, _BOTH,
    "How long a task waits for records that are in the log, in milliseconds.", "120000",
)  # fmt: skip
CACHE_BYTES = Option(
    "max.bytes.key.range.cache", Integer(0, LONG), Section.CACHE, _BOTH,
    "The most shared memory on a host for records that several tasks read, over all queries of a user. One task "
    "fetches them for all. 0: each task fetches for itself.", "209715200",
)  # fmt: skip
MOST_UNFILTERED = Option(
    "max.bytes.fetcher.filtering", Integer(65_536, LONG), Section.READ, _BOTH,
    "The most bytes that a task holds fetched and not yet filtered: the answer in work, the next answer, and the "
    "decoded part of the first. An answer of Kafka has at most a quarter of this, even if `kafka.fetch.max.bytes` is "
    "larger. A larger record batch comes alone. A record of a compressed batch must fit into it, or into 16 MiB.",
    "104857600",
)  # fmt: skip
MOST_UNCOMPRESSED = Option(
    "max.batch.uncompressed.bytes", Integer(65_536, LONG), Section.READ, _BOTH,
    "The most bytes of a record batch after decompression. A task decodes a batch in pieces of 4 "
    "MiB, so this bounds its work and not its memory. A larger batch fails the task with BATCH_TOO_LARGE; "
    "with `failOnDataLoss=false` the task skips it and logs a warning. See [reading.md](reading.md).", "1073741824",
)  # fmt: skip
GROUP_ID_PREFIX = Option(
    "groupIdPrefix", Text(), Section.READ, _BOTH,
    "Accepted, without effect: tasks join no Kafka group, so they generate no group id.",
)  # fmt: skip

MAP_IN_READ = Option(
    "map.in.read", FunctionText(), Section.FUNCTION, _BOTH, most=LONG, meaning=
    "A function from Arrow batches to Arrow batches that tasks run on their records: pickled, or `module:function` "
    "as executors can import it. Its output is the query's rows. See [map-in-read.md](map-in-read.md).",
)  # fmt: skip
MAP_IN_READ_SCHEMA = Option(
    "map.in.read.schema", RowSchema(), Section.FUNCTION, _BOTH,
    "The columns of the function's output. Required with `map.in.read`.",
)  # fmt: skip
MAP_IN_READ_PER_KEY = Option(
    "map.in.read.per.key", Flag(), Section.FUNCTION, _BOTH,
    "true: each call gets one key and some of its records. false: one call gets an iterator of all batches.", "false",
)  # fmt: skip
MAP_IN_READ_CONCURRENCY = Option(
    "map.in.read.concurrency", Integer(1, 16_384), Section.FUNCTION, _BOTH,
    "The most keys that a task works on at once, each key in order: in threads, at most 1,024, or with `async def` as "
    "coroutines of one event loop. Above 1 only with `map.in.read.per.key`.", "1",
)  # fmt: skip

MAP_IN_READ_ON_ERROR = Option(
    "map.in.read.on.error", OnErrorText(), Section.FUNCTION, _BOTH, most=LONG, meaning=
    "What follows if the function fails on a record: attempts, back-off, and then `fail`, `park`, `dead_letter` or "
    "`skip`. Only with `map.in.read.per.key`. See [failing-records.md](failing-records.md).",
    default_shown="the query fails",
)  # fmt: skip

OPTIONS: tuple[Option[object], ...] = (
    SUBSCRIBE, SUBSCRIBE_PATTERN, ASSIGN, INCLUDE_HEADERS, COLUMNS,
    FILTER_RANGES, FILTER_ALLOW, FILTER_DENY, FILTER_LEAST_BYTES, FILTER_MOST_BYTES,
    PUSH_FILTERS,
    STARTING_TIMESTAMP, STARTING_OFFSETS_BY_TIMESTAMP, STARTING_OFFSETS, STARTING_STRATEGY,
    ENDING_TIMESTAMP, ENDING_OFFSETS_BY_TIMESTAMP, ENDING_OFFSETS,
    MAX_OFFSETS, MIN_OFFSETS, MAX_DELAY, MIN_PARTITIONS, MAX_RECORDS_PER_PARTITION,
    GROUP, REDIS_URL, SLOTS, CAPACITY, ASSIGNOR, COPARTITION, LISTENER, LABELS, REPORT_PORT, SHARING, SEVERAL_QUERIES,
    REDUNDANCY, STANDBY, ORDERING,
    UNREAD_BATCHES, REPLAY_ACKNOWLEDGED, MAX_RANGES, MAX_INDIVIDUAL_COMMITS, MAX_DEFERRED_KEYS,
    LANES,
    SESSION, HEARTBEAT, LONGEST_BATCH, GAP_MAX_WAIT, BATCH_BUDGET, MAX_LANE_LEAD, RETENTION, MAX_OUTAGE,
    KAFKA_MAX_OUTAGE, GROWTH_GRACE,
    ON_STATE_LOSS,
    FAIL_ON_DATA_LOSS, FETCH_RETRIES, FETCH_RETRY_INTERVAL, POLL_TIMEOUT, MOST_UNFILTERED, MOST_UNCOMPRESSED,
    CACHE_BYTES, GROUP_ID_PREFIX,
    MAP_IN_READ, MAP_IN_READ_SCHEMA, MAP_IN_READ_PER_KEY, MAP_IN_READ_CONCURRENCY, MAP_IN_READ_ON_ERROR,
)  # fmt: skip
"""All options but `kafka.*`, in the order of the docs."""
