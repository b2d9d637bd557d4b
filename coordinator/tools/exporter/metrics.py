"""Every metric of `coop-kafka exporter`; docs/monitoring.md has the same table. Pure.

Names and labels are those of kminion with the namespace `coop`, where both mean the same. No label carries a key.
"""

from dataclasses import dataclass

GROUP = ("group_id",)
TOPIC = (*GROUP, "topic_name")
PARTITION = (*TOPIC, "partition_id")
MEMBER = (*GROUP, "member_id")

_OF_GROUP = "coop_kafka_consumer_group_"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric."""

    name: str  # as Prometheus shows it
    labels: tuple[str, ...]
    meaning: str
    kind: str = "gauge"  # or counter: then the name ends in `_total`


REDIS_UP = Metric("coop_redis_up", (), "1 if Redis answered. Otherwise there are no metrics of groups.")
KAFKA_UP = Metric(
    "coop_kafka_up", (), "1 if Kafka named the end offsets in time. Otherwise there is no lag. Absent without groups."
)
SCRAPE = Metric("coop_exporter_scrape_seconds", (), "Time to read all groups and end offsets for this scrape.")
READABLE = Metric(
    f"{_OF_GROUP}readable", GROUP, "0 if the group's keys in Redis are damaged: then it has no other metric."
)
WRITABLE = Metric(
    f"{_OF_GROUP}writable",
    GROUP,
    "0 if the group's Redis answers and takes no writes: it is full, cannot save, lacks replicas, or is a replica.",
)
INFO = Metric(
    f"{_OF_GROUP}info",
    (*GROUP, "protocol", "state"),
    "1 if the group is Stable, else 0; the labels have its assignor and state.",
)
MEMBERS = Metric(f"{_OF_GROUP}members", GROUP, "Members with a lease.")
REBALANCES = Metric(f"{_OF_GROUP}rebalances_total", GROUP, "Assignments so far: the generation.", "counter")
GENERATION_AGE = Metric(f"{_OF_GROUP}generation_age_seconds", GROUP, "Age of the assignment.")
PARKED_LANES = Metric(
    f"{_OF_GROUP}parked_lanes", GROUP, "Quarantined lanes: nobody reads them until `coop-kafka release`."
)
STRUCK_LANES = Metric(
    f"{_OF_GROUP}lanes_on_trial",
    GROUP,
    "Lanes that are tested alone, because a member died or hung while it read them.",
)
PARKED_KEYS = Metric(f"{_OF_GROUP}parked_keys", GROUP, "Quarantined keys: they wait for `coop-kafka release`.")
DEFERRED_KEYS = Metric(f"{_OF_GROUP}deferred_keys", GROUP, "Failing keys that are tried again.")
DEFERRED_AGE = Metric(f"{_OF_GROUP}deferred_age_seconds", GROUP, "Age of the oldest record of a deferred key.")
MEMBER_INFO = Metric(f"{_OF_GROUP}member_info", (*MEMBER, "host", "state"), "1, with the host and the state.")
LEASE = Metric(f"{_OF_GROUP}member_lease_seconds", MEMBER, "Time left of the lease; 0 after its end.")
BATCH = Metric(f"{_OF_GROUP}member_batch_seconds", MEMBER, "Time since the batch under way began; 0 between batches.")
LAST_BATCH = Metric(f"{_OF_GROUP}member_last_batch_seconds", MEMBER, "Duration of the last batch.")
BUDGET = Metric(f"{_OF_GROUP}member_batch_budget_seconds", MEMBER, "`batchTimeBudget`; absent if it is 0.")
LONGEST = Metric(f"{_OF_GROUP}member_longest_batch_seconds", MEMBER, "`longestBatch`: then it counts as hung.")
WANTED = Metric(
    f"{_OF_GROUP}wanted_slots",
    GROUP,
    "Slots that read what arrives, and the backlog within `--drain-within`. At least 1 while there is a lag.",
)
TOPIC_LAG = Metric(f"{_OF_GROUP}topic_lag", TOPIC, "Sum of the lags of its partitions.")
HASH_LAG = Metric(
    f"{_OF_GROUP}topic_hash_lag",
    (*TOPIC, "first_digit"),
    "Largest lag of a lane, by the first digit of its key hashes: `0` to `7`.",
)
LAG = Metric(f"{_OF_GROUP}topic_partition_lag", PARTITION, "Offsets from the stable offset to the end offset.")
STABLE = Metric(f"{_OF_GROUP}topic_partition_stable_offset", PARTITION, "All records before it are in the sink.")
GAP = Metric(
    f"{_OF_GROUP}topic_partition_head_of_line_gap", PARTITION, "Offsets from the stable offset to the furthest lane."
)
LANE_LAG = Metric(
    f"{_OF_GROUP}topic_partition_lane_lag_seconds",
    PARTITION,
    "Age of the oldest unread record, in the lane furthest behind. For records older than the exporter process, the "
    "value is a lower bound, and 0 in the first scrape. The error is at most the time between two scrapes, or a sixth "
    "of the age.",
)
OWNED = Metric(
    f"{_OF_GROUP}topic_partition_owned_ratio",
    (*PARTITION, "member_id"),
    "Share of the key hashes that the member owns.",
)
LOG_END = Metric(
    "coop_kafka_topic_partition_high_water_mark",
    ("topic_name", "partition_id"),
    "The end offset; with `isolation.level=read_committed` in --command-config, the last stable offset.",
)

METRICS = (
    *(REDIS_UP, KAFKA_UP, SCRAPE, READABLE, WRITABLE, INFO, MEMBERS, REBALANCES, GENERATION_AGE),
    *(PARKED_LANES, STRUCK_LANES, PARKED_KEYS, DEFERRED_KEYS, DEFERRED_AGE),
    *(MEMBER_INFO, LEASE, BATCH, LAST_BATCH, BUDGET, LONGEST),
    *(WANTED, TOPIC_LAG, HASH_LAG, LAG, STABLE, GAP, LANE_LAG, OWNED, LOG_END),
)
