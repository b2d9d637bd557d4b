"""From options to the coordinator's values: the one place where the two meet. Driver side; does no IO."""

from coordinator.assignors import registry
from coordinator.kafka_log import KafkaLog
from coordinator.planning import Cutting
from coordinator.settings import GroupSettings
from spark_coop_source.options import SourceOptions


def kafka_log(options: SourceOptions) -> KafkaLog:
    """The log of these options, not yet connected."""
    return KafkaLog(
        options.kafka,
        retries=options.fetch_retries,
        retry_interval_ms=options.fetch_retry_interval_ms,
        fail_on_data_loss=options.fail_on_data_loss,
    )


def cutting(options: SourceOptions) -> Cutting:
    """How finely these options cut."""
    return Cutting(options.slots, options.lanes, options.min_partitions, options.max_records_per_partition)


def group_settings(options: SourceOptions, group: str) -> GroupSettings:
    """The settings of a member of `group`."""
    return GroupSettings(
        group,
        capacity=options.capacity,
        session_ms=options.session_ms,
        longest_ms=options.longest_batch_ms,
        assignor=registry.assignor(options.assignor),
        heartbeat_ms=options.heartbeat_ms,
        retention_ms=options.retention_ms,
        max_outage_ms=options.redis_max_outage_ms,
        fail_on_data_loss=options.fail_on_data_loss,
        on_state_loss="earliest" if options.on_state_loss == "earliest" else "fail",
    )
