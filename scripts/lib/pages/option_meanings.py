"""The texts of docs/options.md: the meaning of each option, by the name of its field, in the order of the page."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Section(StrEnum):
    """The headings of the page."""

    WHAT = "What is read"
    FILTER = "Which records it emits"
    START = "Where it starts and where it ends"
    RATE = "How much a micro-batch reads"
    GROUP = "The group"
    TIMES = "Leases and Redis"
    READ = "How it is read"
    CACHE = "Fetching once on a host"
    FUNCTION = "A function inside the read"


_BOTH, _STREAM, _BATCH = "stream, batch", "stream", "batch"


@dataclass(frozen=True, slots=True)
class Meaning:
    """A row of the page."""

    where: str  # the queries in which the option has an effect
    text: str
    default: str = "none"  # where there is no fixed default


# fmt: off
MEANINGS: Mapping[Section, Mapping[str, Meaning]] = {
    Section.WHAT: {
        "subscribe": Meaning(_BOTH,
            "The topics. Exactly one of `subscribe`, `subscribePattern` and `assign` is required."),
        "subscribe_pattern": Meaning(_BOTH,
            "All topics whose name contains a match (use `^...$` for the whole name), including topics created later. "
            "In a cluster with many thousands of topics a query finds a new one after some seconds: it looks for new "
            "topics for at most a fortieth of the time."),
        "assign": Meaning(_BOTH,
            "Fixed partitions, in Spark's form or with key ranges. Without a group, a stream over them is standalone: "
            "no Redis, positions in the checkpoint only. With a group, Spark's form is an ordinary subscription. The "
            "form with key ranges [pins](applications.md#pinned-ranges) the member to them. Hashes go from 0 to "
            "9223372036854775807, so the upper half is `[4611686018427387904,9223372036854775807]`."),
        "include_headers": Meaning(_BOTH, "Whether rows have the column `headers`."),
        "named_columns": Meaning(_BOTH,
            "The columns of a row. Other columns are not built, and cost nothing. Not with `function`. Not with "
            "`includeHeaders`: name `headers` here instead. `acknowledgement` needs a stream with a group: see "
            "[commit-api.md](commit-api.md).", default="all but `headers` and `acknowledgement`"),
    },
    Section.FILTER: {
        "filter_ranges": Meaning(_BOTH,
            "Only records whose key hash lies in these ranges. A record without a key has the hash of its offset. "
            "Records that a filter drops count as processed. See [filters](reading.md#filters).",
            default="the whole hash space"),
        "filter_allow": Meaning(_BOTH,
            "Only records with these keys. A record without a key passes only if `null` is among them.",
            default="any key"),
        "filter_deny": Meaning(_BOTH,
            "No records with these keys. A record without a key passes unless `null` is among them."),
        "filter_least_bytes": Meaning(_BOTH,
            "Only records of at least this size: the bytes of key and value as they are in the record. A null has none."
            " Headers do not count."),
        "filter_most_bytes": Meaning(_BOTH,
            "Only records of at most this size. At least `filterRecordBytesMin`.", default="no limit"),
        "push_filters": Meaning(_BATCH,
            "Whether `spark.read` reads only what Spark's own filters on partition, offset, key and timestamp leave. "
            "Needs `spark.sql.python.filterPushdown.enabled=true`, else Spark fails with DATA_SOURCE_PUSHDOWN_DISABLED."
            " Not with `function`. See [filters](reading.md#sparks-own-filters)."),
    },
    Section.START: {
        "starting_timestamp": Meaning(_BOTH,
            "Start at the first record at or after this time in every partition. Overrides `startingOffsetsByTimestamp`"
            " and `startingOffsets`."),
        "starting_by_timestamp": Meaning(_BOTH,
            "The same with a time for each partition. It must name all partitions. Overrides `startingOffsets`."),
        "starting_offsets": Meaning(_BOTH,
            "The start: a word, or an offset for every partition, with -2 for earliest and -1 for latest. A batch "
            "cannot start at latest. A stream uses it only for a group without positions. Partitions that appear later "
            "start at earliest.", default="latest for a stream, earliest for a batch"),
        "starting_strategy": Meaning(_BOTH, "If no record is at or after the starting time: fail, or start at latest."),
        "ending_timestamp": Meaning(_BATCH,
            "End before the first record at or after this time; without such a record, at latest. Overrides "
            "`endingOffsetsByTimestamp` and `endingOffsets`. A stream refuses it."),
        "ending_by_timestamp": Meaning(_BATCH,
            "The same with a time for each partition. Overrides `endingOffsets`. A stream refuses it."),
        "ending_offsets": Meaning(_BATCH,
            "The end, exclusive: latest, or an offset for each partition with -1 for latest. It refuses earliest and "
            "-2. A stream refuses it.", default="latest"),
    },
    Section.RATE: {
        "max_offsets_per_trigger": Meaning(_STREAM,
            "The most offsets of one micro-batch, over all partitions. An offset counts by the share of the hash space "
            "read."),
        "min_offsets_per_trigger": Meaning(_STREAM,
            "Wait for this many new offsets, or until `maxTriggerDelay` is over. At most `maxOffsetsPerTrigger`."),
        "max_trigger_delay_ms": Meaning(_STREAM, "The longest wait for `minOffsetsPerTrigger`."),
        "min_partitions": Meaning(_BOTH,
            "The wanted minimum of Spark tasks. Partitions are cut by key hash, so the order within a key is kept."),
        "max_records_per_partition": Meaning(_BOTH,
            "The wanted maximum of records in a Spark task. Cuts by key hash, as `minPartitions`, up to about 4,096 "
            "lanes in a partition and 65,536 in a batch."),
    },
    Section.GROUP: {
        "group": Meaning(_STREAM,
            "The group whose members share the topics, the same as `kafka.group.id`. Required for a stream that is not "
            "standalone. A batch ignores it. Applications of one group need a checkpoint each: see "
            "docs/applications.md."),
        "redis_url": Meaning(_STREAM,
            "The Redis or Valkey with the group's state. A batch ignores it.",
            default="`COOP_REDIS` in the environment of the driver; required with `group`"),
        "slots": Meaning(_BOTH,
            "The number of Spark tasks that this application runs at once.",
            default="the cores that the driver may use"),
        "capacity": Meaning(_STREAM,
            "This application's share of the group's work, relative to the capacity of the other members.",
            default="`slots`"),
        "assignor": Meaning(_STREAM,
            "The rule that assigns key ranges to members. Of several names, by preference, the group uses one that all "
            "its members name, so that a rolling restart can change it. See [assignors](applications.md#assignors)."),
        "copartition": Meaning(_BOTH,
            "Topics that a function or a query joins by key. Partition i of each has the same lanes and the same owner,"
            " and one task reads the same keys of all of them. They need equal numbers of partitions "
            "(`NOT_COPARTITIONED`). All members of the group need the same value. Not with `assign`, `assignor` and "
            "`maxRecordsPerPartition`. See [joins](stateful.md#joins)."),
        "listener": Meaning(_STREAM,
            "A class that is called in the reader process of the driver, when this application acquires, gives up "
            "or loses key ranges. See [operations](operations.md#ownership-in-your-own-code)."),
        "labels": Meaning(_STREAM,
            "Labels of this application for assignors and operators, as zone=a,team=core. The member reports host, "
            "process id and `kafka.client.rack` without them."),
        "report_ports": Meaning(_STREAM,
            "The TCP port of the driver's host to which tasks connect, to report costs and ends. A range: the first "
            "free port of it. Each query needs a port of its own.", default="any free port"),
        "sharing": Meaning(_STREAM,
            "How this query shares the group. auto: it shares partitions where the policies allow it. required: it "
            "fails at its start if a policy forbids that. partitions: it owns whole partitions only; members that "
            "share still get work. never: it reads the group alone, and others may only stand by; use it with "
            "[stateful operators](stateful.md). Each query brings its own value, and the strictest wins: see "
            "[who may share](ordering.md#who-may-share-a-partition)."),
        "several_queries": Meaning(_STREAM,
            "Whether queries of one application may be members of one group. false: a second query fails with "
            "`GROUP_BUSY`. Two reads of one query (two `load()`s in a union or a join, both sides of a self-join) fail "
            "with either value: use a separate group for each read, or `copartition`."),
        "redundancy": Meaning(_STREAM,
            "How many members read each record. 2: the members form two replica sets, each of which reads everything, "
            "and has positions of its own. See [redundant reading](applications.md#redundant-reading)."),
        "standby": Meaning(_STREAM,
            "Whether this query is a standby: it owns nothing while enough others work, and takes over when one is "
            "lost. Not for a batch, nor with AvailableNow, key ranges in `assign`, `copartition`, `redundancy` or "
            "`ordering=none`. See [hot standby](applications.md#hot-standby)."),
        "ordering": Meaning(_STREAM,
            "What the group keeps in order. key: the records of each key. partition: the records of each partition, "
            "which one task then reads whole. none: nothing; members then share partitions by offsets, and a slow key "
            "delays the member that reads it. All members need the same value. An empty group takes the value of the "
            "next member. See [ordering](ordering.md)."),
        "policies": Meaning(_STREAM,
            "`required`: if the Kafka user may not read the topic `coop-kafka-policies`, and Redis has no copy of it,"
            " nothing is shared. `optional`: what Redis has holds. See [policies](ordering.md#policies)."),
        "unread_batches": Meaning(_STREAM,
            "Whether a batch that Spark completes without reading it counts as processed. false: the query fails with "
            "`SINK_SKIPPED_BATCH`. true: for a query that drops records unread on purpose, as `limit(0)` does."),
        "replay_acknowledged": Meaning(_STREAM,
            "Whether a batch that Spark replays after a restart has the records again that were acknowledged before. "
            "false: it has only the others, so the batch is not the same as before. See "
            "[commit-api.md](commit-api.md#replays)."),
        "max_individual_commits": Meaning(_STREAM,
            "The most individual commits of a partition. At this limit, the group reads only lanes at the stable offset"
            " and gaps, and refuses commits that would add one. Each member applies its own value."),
        "max_deferred_keys": Meaning(_STREAM,
            "The most failing keys of a partition, deferred or quarantined. At this limit, the group reads only these "
            "keys of the partition until there are fewer. Each member applies its own value. See "
            "[failing records](failing-records.md)."),
        "lanes": Meaning(_BOTH,
            "A fixed number of lanes for every partition: a slow key then gets no lane of its own. A batch has at most "
            "65,536, so they may be fewer.",
            default="as many as the slots need"),
    },
    Section.TIMES: {
        "session_ms": Meaning(_STREAM,
            "If a member does not renew its lease for this time, others may take its key ranges; without order, they "
            "read its slices."),
        "heartbeat_ms": Meaning(_STREAM,
            "The interval at which a member renews its lease. At most a third of "
            "`sessionTimeout`.", default="`3s`, or a third of `sessionTimeout` if that is less"),
        "longest_ms": Meaning(_STREAM,
            "If tasks of a micro-batch read for longer, others may take the member's key ranges."),
        "batch_budget_ms": Meaning(_STREAM,
            "The intended time of a micro-batch. Each lane reads only as much as fits, so a slow key delays only "
            "its lane, if the work runs [inside the read](functions.md). A lane reads at least one record, even "
            "if that takes longer. `0`: no limit."),
        "max_lead_ms": Meaning(_STREAM,
            "How far a lane may be ahead of the last lane of the same query, by the timestamps of records. With event "
            "time, set at most the delay of the watermark. See [event time](stateful.md#event-time).",
            default="no limit"),
        "retention_ms": Meaning(_STREAM,
            "Redis keeps the state of a group without members, and of a topic without subscribers, for this time "
            "(KIP-211). The longest time of the group's members counts."),
        "max_outage_ms": Meaning(_STREAM,
            "The query fails if Redis is unreachable for longer. Commits wait until then."),
        "kafka_max_outage_ms": Meaning(_BOTH,
            "The query fails if Kafka, or the leader of a partition, does not answer for longer; at the first contact "
            "after 60 seconds. Until then the records of that partition wait, and all others are read."),
        "growth_grace_ms": Meaning(_STREAM,
            "After you [add partitions](ordering.md#when-you-add-partitions), each hash range of a new partition waits "
            "for the same range of the older ones, so that a key that moved there stays in order. It waits for records "
            "that were written up to this time later: set more than the producers' `metadata.max.age.ms` (5 minutes by "
            "default). The longest grace of the group's members counts. 0: new partitions do not wait."),
        "on_state_loss": Meaning(_STREAM,
            "If Redis lost the group's state and nothing proves a position: fail, or start at earliest. The member that"
            " recovers the group decides."),
    },
    Section.READ: {
        "fail_on_data_loss": Meaning(_BOTH,
            "If records were lost before they were read (retention, a deleted topic): true fails, false skips them. In "
            "a group, the member that finds the loss decides."),
        "fetch_retries": Meaning(_BOTH, "How often the driver retries a request to Kafka."),
        "fetch_retry_interval_ms": Meaning(_BOTH, "The pause between two such requests."),
        "poll_timeout_ms": Meaning(_BOTH, "How long a task waits for records that are in the log."),
        "most_unfiltered": Meaning(_BOTH,
            "The most bytes that a task holds fetched and not yet filtered: the answer in work, the next answer, and "
            "the decoded part of the first. An answer of Kafka has at most a quarter of this, even if "
            "`kafka.fetch.max.bytes` is larger. A larger record batch comes alone. A record of a compressed batch must "
            "fit into it, or into 16 MiB."),
        "most_uncompressed": Meaning(_BOTH,
            "The most bytes of a record batch after decompression. A task decodes a batch in pieces of 4 MiB, so this "
            "bounds its work and not its memory. A larger batch fails the task with BATCH_TOO_LARGE; with "
            "`failOnDataLoss=false` the task skips it and logs a warning. See [reading.md](reading.md)."),
        "group_id_prefix": Meaning(_BOTH,
            "Accepted, without effect: tasks join no Kafka group, so they generate no group id."),
    },
    Section.CACHE: {
        "cache_bytes": Meaning(_BOTH,
            "The most shared memory on a host for records that several tasks read, over all queries of a user. Each is"
            " fetched by one of them. 0: each task fetches for itself."),
    },
    Section.FUNCTION: {
        "function": Meaning(_BOTH,
            "A function that tasks run on their records: pickled, or `module:function` as executors can import it. Its "
            "output is the query's rows. `map_records`, `map_keys` and `map_batches` of `spark_coop_source` make all "
            "options of this table: `.options(**map_records(f, \"n long\"))`. See [functions.md](functions.md)."),
        "function_output": Meaning(_BOTH, "The columns of the function's output. Required with `function`."),
        "takes": Meaning(_BOTH,
            "What a call gets: a record, a key and some of its records, or all batches as an iterator."),
        "timeout_ms": Meaning(_BOTH,
            "The longest call of a coroutine function. A longer call is cancelled, and has failed.",
            default="no limit"),
        "concurrency": Meaning(_BOTH,
            "The most keys that a task works on at once, each key in order: in threads, at most 1,024, or with `async "
            "def` as coroutines of one event loop. Above 1 only with `functionTakes` records or keys."),
        "function_on_error": Meaning(_BOTH,
            "What follows if the function fails on a record: attempts, back-off, and then `fail`, `park`, `dead_letter`"
            " or `skip`. Only with `functionTakes` records or keys. See [failing-records.md](failing-records.md).",
            default="the query fails"),
    },
}
