"""The options of a query as one checked value.

`DataSource.schema()` calls `validate`, and each reader calls it again, in short-lived processes of the driver host. It
starts nothing, and reads no more than the files of `filter.keys.*`. `table` has the rules of single options; this
module has the rules between options.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pyspark.sql.types import StructType

from coordinator.errors import ConflictingOptionsError, InvalidOptionError, MissingOptionError
from coordinator.errors.quoting import shown
from coordinator.values.offset_spec import Earliest, Latest, OffsetSpec
from coordinator.values.ranges import OFFSET_MAX, WHOLE
from coordinator.values.record_filter import RecordFilter
from coordinator.values.subscription import Assigned, Subscription
from spark_coop_source.arrow_output.schema import ACKNOWLEDGEMENT, EVERY, PLAIN
from spark_coop_source.function.error_policy import ErrorPolicy
from spark_coop_source.options import (
    copartition,
    function_options,
    offset_options,
    redundancy,
    standby,
    table,
    without_order,
)
from spark_coop_source.options.cores import cores
from spark_coop_source.options.kafka_options import kafka_arguments
from spark_coop_source.options.names import check_name
from spark_coop_source.options.notices import notices
from spark_coop_source.options.values import Given, Option

_MS_PER_MINUTE = 60_000
_HEARTBEAT_MS = 3_000
_SLOTS_MAX = 1_024


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The checked options of a query. Times are milliseconds; picklable; `repr` shows no secret."""

    kafka: Mapping[str, object]  # for coordinator.kafka.client.client_arguments; `repr` hides secrets
    subscription: Subscription
    group: str | None  # None: a standalone stream or a batch
    redis_url: str | None = field(repr=False)
    starting: OffsetSpec
    starting_option: str | None  # the user's; None: the default
    ending: OffsetSpec  # of a batch; Latest() for a stream
    fail_on_data_loss: bool
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    min_partitions: int | None
    max_records_per_partition: int | None
    columns: tuple[str, ...]  # of a row
    filter: RecordFilter = field(repr=False)  # it holds keys, which may be confidential
    push_filters: bool  # of a batch
    fetch_retries: int
    fetch_retry_interval_ms: int
    poll_timeout_ms: int
    most_unfiltered: int  # bytes of a task, fetched and not yet filtered
    most_uncompressed: int  # bytes that a compressed record batch may hold
    cache_bytes: int  # of shared memory on a host; 0: none
    slots: int
    slots_given: bool  # else they are the cores of the driver's host
    capacity: int
    assignor: str  # a name of coordinator.assignment.assignors.registry
    copartition: tuple[str, ...]  # topics with the same lanes and owners; empty: none
    listener: str | None  # module:Class, of coordinator.assignment.ownership_listener
    labels: Mapping[str, str]  # of the member
    report_ports: range  # of the server that tasks connect to; port 0 is any free one
    sharing: bool | None  # whether it may own parts of partitions; None: where policies allow it
    several_queries: bool  # of one application, in one group
    redundancy: int  # number of replica sets
    standby: bool
    ordering: str  # of the group: key | none
    gap_wait_ms: int | None  # of slices without order; None: the session
    unread_batches: bool  # whether they count as done once the sink completes them
    replay_acknowledged: bool  # whether a replay has the records again that were acknowledged
    max_ranges: int  # see coordinator.commits.acknowledger
    max_individual_commits: int  # of a partition
    max_deferred_keys: int  # of a partition
    lanes: int | None  # fixed number for every partition
    session_ms: int
    heartbeat_ms: int
    longest_batch_ms: int
    batch_budget_ms: int  # 0: none
    max_lead_ms: int | None  # of lanes; None: any
    retention_ms: int
    redis_max_outage_ms: int
    kafka_max_outage_ms: int
    growth_grace_ms: int
    on_state_loss: str  # fail | earliest
    function: str | None = field(repr=False)  # the text for `user_function.loaded`
    function_output: StructType | str | None  # its rows; text (DDL) is for Spark to parse
    function_per_key: bool
    function_concurrency: int
    function_on_error: ErrorPolicy | None = field(repr=False)
    notices: tuple[str, ...]  # lines for the log, when the query starts

    @property
    def standalone(self) -> bool:
        """Whether it reads without a group. Then positions are in the checkpoint only."""
        return self.group is None


def validate(options: Mapping[str, str], *, streaming: bool | None) -> SourceOptions:
    """The options as one value; raises `ConfigurationError`s.

    Args:
        options: the user's, names in any case, values verbatim.
        streaming: None where it is unknown (`DataSource.schema()`): then only options that are invalid for both a
            stream and a batch are refused.
    """
    for name in options:
        check_name(name)
    given = Given({name.lower(): text for name, text in options.items()})
    checked = _checked(given, streaming)
    _check_rates(checked)
    _check_lease(checked)
    _check_function(checked, streaming=streaming)
    copartition.check(given, checked.copartition, checked.subscription, streaming=streaming)
    if streaming is not None:
        _check_acknowledgement(checked)
        standby.check(given, checked.group, streaming=streaming)
    if streaming:
        offset_options.check_stream(given)
        _check_group(checked, given)
        redundancy.check(checked.redundancy, checked.group, checked.subscription, joined=bool(checked.copartition))
        without_order.check(given, checked.group, checked.ordering, checked.gap_wait_ms, checked.heartbeat_ms)
    elif streaming is False:
        offset_options.check_batch(checked.starting, checked.ending)
    return checked


def _checked(given: Given, streaming: bool | None) -> SourceOptions:
    batch = streaming is False
    given.get(table.GROUP_ID_PREFIX)  # checked, and not used
    slots = given.get(table.SLOTS) or min(cores(), _SLOTS_MAX)
    session_ms = given.need(table.SESSION)
    group, redis_url = _group(given), given.get(table.REDIS_URL)
    starting = offset_options.starting(given, Earliest() if batch else Latest())
    ending = Latest() if streaming else offset_options.ending(given)
    return SourceOptions(
        kafka=kafka_arguments(given.texts),
        subscription=_subscription(given),
        group=None if batch else group,
        redis_url=None if batch else redis_url,
        starting=starting,
        starting_option=offset_options.starting_option(given),
        ending=ending,
        fail_on_data_loss=given.need(table.FAIL_ON_DATA_LOSS),
        max_offsets_per_trigger=given.get(table.MAX_OFFSETS),
        min_offsets_per_trigger=given.get(table.MIN_OFFSETS),
        max_trigger_delay_ms=given.need(table.MAX_DELAY),
        min_partitions=given.get(table.MIN_PARTITIONS),
        max_records_per_partition=given.get(table.MAX_RECORDS_PER_PARTITION),
        columns=_columns(given),
        filter=_filter(given),
        push_filters=given.need(table.PUSH_FILTERS),
        fetch_retries=given.need(table.FETCH_RETRIES),
        fetch_retry_interval_ms=given.need(table.FETCH_RETRY_INTERVAL),
        poll_timeout_ms=given.need(table.POLL_TIMEOUT),
        most_unfiltered=given.need(table.MOST_UNFILTERED),
        most_uncompressed=given.need(table.MOST_UNCOMPRESSED),
        cache_bytes=given.need(table.CACHE_BYTES),
        slots=slots,
        slots_given=given.get(table.SLOTS) is not None,
        capacity=given.get(table.CAPACITY) or slots,
        assignor=given.need(table.ASSIGNOR),
        copartition=given.get(table.COPARTITION) or (),
        listener=given.get(table.LISTENER),
        labels=given.get(table.LABELS) or {},
        report_ports=given.get(table.REPORT_PORT) or range(1),
        sharing=given.get(table.SHARING),
        several_queries=given.need(table.SEVERAL_QUERIES),
        redundancy=given.need(table.REDUNDANCY),
        standby=given.need(table.STANDBY),
        ordering=given.need(table.ORDERING),
        gap_wait_ms=given.get(table.GAP_MAX_WAIT),
        unread_batches=given.need(table.UNREAD_BATCHES),
        replay_acknowledged=given.need(table.REPLAY_ACKNOWLEDGED),
        max_ranges=given.need(table.MAX_RANGES),
        max_individual_commits=given.need(table.MAX_INDIVIDUAL_COMMITS),
        max_deferred_keys=given.need(table.MAX_DEFERRED_KEYS),
        lanes=given.get(table.LANES),
        session_ms=session_ms,
        heartbeat_ms=given.get(table.HEARTBEAT) or min(_HEARTBEAT_MS, session_ms // 3),
        longest_batch_ms=given.need(table.LONGEST_BATCH),
        batch_budget_ms=given.need(table.BATCH_BUDGET),
        max_lead_ms=given.get(table.MAX_LANE_LEAD),
        retention_ms=given.need(table.RETENTION) * _MS_PER_MINUTE,
        redis_max_outage_ms=given.need(table.MAX_OUTAGE),
        kafka_max_outage_ms=given.need(table.KAFKA_MAX_OUTAGE),
        growth_grace_ms=given.need(table.GROWTH_GRACE),
        on_state_loss=given.need(table.ON_STATE_LOSS),
        function=given.get(table.MAP_IN_READ),
        function_output=given.get(table.MAP_IN_READ_SCHEMA),
        function_per_key=given.need(table.MAP_IN_READ_PER_KEY),
        function_concurrency=given.need(table.MAP_IN_READ_CONCURRENCY),
        function_on_error=_on_error(given, None if batch else group),
        notices=notices(given.texts, starting, ending, batch=batch),
    )


def _on_error(given: Given, group: str | None) -> ErrorPolicy | None:
    policy = given.get(table.MAP_IN_READ_ON_ERROR)
    return None if policy is None else replace(policy, group=group or "")


def _subscription(given: Given) -> Subscription:
    strategies: tuple[Option[Subscription], ...] = (table.SUBSCRIBE, table.SUBSCRIBE_PATTERN, table.ASSIGN)
    names = ", ".join(option.name for option in strategies)
    chosen = [option for option in strategies if option in given]
    if not chosen:
        raise MissingOptionError(f"none of the options {names} is set", 'add one, e.g. .option("subscribe", "topic")')
    if len(chosen) > 1:
        raise ConflictingOptionsError(
            f"the options {' and '.join(option.name for option in chosen)} are both set",
            f"set exactly one of {names}",
        )
    return given.need(chosen[0])


def _columns(given: Given) -> tuple[str, ...]:
    named = given.get(table.COLUMNS)
    if named is None:
        return EVERY if given.need(table.INCLUDE_HEADERS) else PLAIN
    for other, remedy in (
        (table.INCLUDE_HEADERS, "name headers among the columns instead"),
        (table.MAP_IN_READ, "the function gets every column, and its own schema has the columns of its rows"),
    ):
        if other in given:
            raise ConflictingOptionsError(
                f"the options columns and {other.name} are both set", f"remove one of them: {remedy}"
            )
    return named


def _filter(given: Given) -> RecordFilter:
    most = given.get(table.FILTER_MOST_BYTES)
    found = RecordFilter(
        given.get(table.FILTER_RANGES) or (WHOLE,),
        given.get(table.FILTER_ALLOW),
        given.get(table.FILTER_DENY) or frozenset(),
        given.need(table.FILTER_LEAST_BYTES),
        OFFSET_MAX if most is None else most,
    )
    if found.least_bytes > found.most_bytes:
        raise ConflictingOptionsError(
            f"filter.record.bytes.min ({found.least_bytes}) is higher than filter.record.bytes.max ({most})",
            "lower filter.record.bytes.min, or remove one of the two",
        )
    if found.allow is not None and found.allow <= found.deny:
        raise ConflictingOptionsError(
            "filter.keys.deny names every key of filter.keys.allow, so no record passes",
            "remove keys from filter.keys.deny, or remove one of the two",
        )
    return found


def _group(given: Given) -> str | None:
    group, kafka_group = given.get(table.GROUP), given.texts.get("kafka.group.id")
    if kafka_group is None:
        return group
    kafka_group = kafka_group.strip()  # as Java does
    if group is not None and group != kafka_group:
        raise ConflictingOptionsError(
            f"options group ({shown(group)}) and kafka.group.id ({shown(kafka_group)}) differ",
            "remove one of them: they mean the same",
        )
    return table.GROUP.parse(kafka_group)


def _check_rates(checked: SourceOptions) -> None:
    least, most = checked.min_offsets_per_trigger, checked.max_offsets_per_trigger
    if least is not None and most is not None and least > most:
        raise ConflictingOptionsError(
            f"minOffsetsPerTrigger ({least}) is higher than maxOffsetsPerTrigger ({most})",
            "lower minOffsetsPerTrigger, or remove one of the two",
        )


def _check_lease(checked: SourceOptions) -> None:
    if checked.heartbeat_ms >= checked.session_ms:
        raise InvalidOptionError(
            f"option heartbeat.interval.ms = {checked.heartbeat_ms}: not below session.timeout.ms, "
            f"{checked.session_ms}, so every lease would end between two heartbeats",
            f"set heartbeat.interval.ms to at most a third of that, {checked.session_ms // 3}",
        )


def _check_function(checked: SourceOptions, *, streaming: bool | None) -> None:
    function_options.check(
        checked.function,
        has_schema=checked.function_output is not None,
        per_key=checked.function_per_key,
        concurrency=checked.function_concurrency,
        on_error=checked.function_on_error,
        push_filters=checked.push_filters,
    )
    if streaming is not None:
        function_options.check_parking(checked.function_on_error, _never_early(checked))


def _never_early(checked: SourceOptions) -> str:
    """The reason why no task ends early; empty if tasks may."""
    reasons = {
        "it reads without a group": checked.group is None,
        "its ordering is none": checked.ordering == "none",
        "its batch.time.budget is 0": checked.batch_budget_ms == 0,
        "its allow.unread.batches is true": checked.unread_batches,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _check_acknowledgement(checked: SourceOptions) -> None:
    if ACKNOWLEDGEMENT in checked.columns and checked.group is None:
        raise ConflictingOptionsError(
            f"the option columns names {ACKNOWLEDGEMENT}, but only rows of a stream with a group can be acknowledged",
            f"remove {ACKNOWLEDGEMENT} from columns, or read a stream with the options group and redis.url",
        )


def _check_group(checked: SourceOptions, given: Given) -> None:
    if checked.group is not None:
        _check_shared(checked)
    elif not isinstance(checked.subscription, Assigned):
        raise MissingOptionError(
            "a stream over topics needs a group",
            'add .option("group", "a-name") and .option("redis.url", "redis://host:6379"); or, to read without a group '
            "and Redis, name partitions by the option assign",
        )
    elif table.REDIS_URL in given:
        raise ConflictingOptionsError(
            "redis.url is set, but a stream without the option group does not use Redis",
            'add .option("group", "a-name"), or remove redis.url to read standalone',
        )


def _check_shared(checked: SourceOptions) -> None:
    if checked.redis_url is None:
        raise MissingOptionError(
            f"the group {checked.group!r} needs a Redis to hold its state",
            'add .option("redis.url", "redis://host:6379")',
        )
    given = checked.subscription
    parts = isinstance(given, Assigned) and set(given.partitions.values()) != {(WHOLE,)}
    if parts and checked.sharing is False:
        raise ConflictingOptionsError(
            "assign names parts of partitions, but allow.individual.commit is false",
            "assign whole partitions, or remove allow.individual.commit",
        )
