"""Translates options to the coordinator's values. No other module knows both. Driver side; only one check connects."""

from coordinator.assignment.assignors import registry
from coordinator.assignment.assignors.joined import Joined
from coordinator.assignment.ownership_listener import OwnershipListener, listener
from coordinator.assignment.settings import LONGEST_DELAY_MS, GroupSettings, MemberOptions
from coordinator.kafka.dead_letter_topic import check_dead_letter_topic
from coordinator.kafka.log import KafkaLog
from coordinator.plan.planning import Cutting
from coordinator.redis.group_state import DEAD_LETTERS
from coordinator.values.options import part_of
from spark_coop_source.options.declarations import STARTING, SourceOptions


def kafka_log(options: SourceOptions) -> KafkaLog:
    """The log of these options, not yet connected."""
    return KafkaLog(
        options.kafka,
        retries=options.fetch_retries,
        retry_interval_ms=options.fetch_retry_interval_ms,
        fail_on_data_loss=options.fail_on_data_loss,
        patience_ms=options.kafka_max_outage_ms,
    )


def cutting(options: SourceOptions) -> Cutting:
    """The limits on lanes and tasks in these options."""
    by_offset = options.ordering == "none"
    limits = options.lanes, options.min_partitions, options.max_records_per_partition
    return Cutting(options.slots, *limits, by_offset=by_offset, joined=options.copartition)


def member_fields(options: SourceOptions) -> dict[str, str]:
    """The member's fields that users choose: its rack, the topic of its dead letters, and labels."""
    policy = options.function_on_error
    chosen = {"rack": options.kafka.get("client_rack"), DEAD_LETTERS: policy.topic if policy else None}
    labels = {f"label.{name}": value for name, value in options.labels.items()}
    return {name: str(value) for name, value in chosen.items() if value is not None} | labels


def check_dead_letters(options: SourceOptions) -> None:
    """Ask Kafka for the topic of dead letters, if the query has one; raises the errors of `check_dead_letter_topic`."""
    policy = options.function_on_error
    if policy and policy.topic:
        check_dead_letter_topic(options.kafka, policy.topic, options.subscription)


def standalone_settings(options: SourceOptions) -> GroupSettings:
    """The settings of a query without a group."""
    return GroupSettings("", filter=options.filter, **part_of(options, MemberOptions))


def group_settings(options: SourceOptions, group: str) -> GroupSettings:
    """The settings of a member of `group`."""
    policy = options.function_on_error
    return GroupSettings(
        group,
        sharing=options.sharing != "partitions" and options.ordering != "partition",
        alone=options.sharing == "never",
        demanding=options.sharing == "required" or options.ordering == "none",
        filter=options.filter,
        early_ends=options.batch_budget_ms > 0 and not options.unread_batches and options.ordering != "none",
        assignors=(Joined(options.copartition),) if options.copartition else registry.assignors(options.assignor),
        listener=listener(options.listener) if options.listener else OwnershipListener(),
        on_error=policy is not None,
        longest_delay_ms=policy.backoff_max_ms if policy else LONGEST_DELAY_MS,
        starting_option=next(iter(options.names_given(STARTING)), None),
        **part_of(options, MemberOptions),
    )
