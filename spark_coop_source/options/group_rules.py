"""The rules between the options of a group, and other options. Does no IO."""

from coordinator.assignment.replica_sets import names
from coordinator.errors import ConflictingOptionsError, InvalidOptionError, MissingOptionError
from coordinator.errors.quoting import bounded
from coordinator.values.identifiers import GROUP_NAME_MAX
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Assigned, Topics
from spark_coop_source.arrow_output.schema import ACKNOWLEDGEMENT
from spark_coop_source.options.declarations import SourceOptions

_NOT_WITH_JOINED = {
    "assign": "it names partitions and ranges of each topic; use subscribe",
    "assignor": "copartition is an assignor of its own",
    "max_records_per_partition": "it cuts each topic into other lanes; use maxOffsetsPerTrigger",
}

_OF_KEY_RANGES = (
    "assignor", "copartition", "capacity", "listener", "sharing", "lanes", "max_lead_ms", "growth_grace_ms",
    "max_individual_commits", "replay_acknowledged",
)  # fmt: skip
"""Options of key ranges, lanes and individual commits: a group without order has none of them."""

_OF_PARTS = ("sharing", "lanes", "min_partitions", "max_records_per_partition")
"""Options that cut partitions: a group in partition order reads them whole."""

_REMEDIES_OF_STANDBY = {
    "assign names key ranges": "remove standby: a second query with the same key ranges in assign is a spare already",
    "ordering=none is set": "remove standby: after the lease of a lost member, the other members read its slices",
    "copartition is set": "remove standby: the reads of one query would take over one by one",
    "redundancy is above 1": "remove redundancy, and give each replica set a group of its own, with a standby",
}


def check_joined(options: SourceOptions, *, streaming: bool | None) -> None:
    """Refuse options that do not fit joined topics. Only streams may read some of them: other reads read the rest."""
    joined, subscription = options.copartition, options.subscription
    if not joined:
        return
    for field, reason in _NOT_WITH_JOINED.items():
        for name in options.names_given([field]):
            raise ConflictingOptionsError(
                f"the options copartition and {name} are both set", f"remove {name}: {reason}"
            )
    missing = [t for t in joined if t not in subscription.names] if isinstance(subscription, Topics) else []
    if len(missing) == len(joined) or (missing and streaming is False):
        raise InvalidOptionError(
            f"option copartition names topic {missing[0]}, which the option subscribe does not name",
            "name the same topics in both options; subscribe may name more",
        )


def check_group(options: SourceOptions) -> None:
    """Refuse a stream with a group but no Redis, or with topics or Redis but no group."""
    if options.group is not None:
        _check_shared(options)
    elif not isinstance(options.subscription, Assigned):
        raise MissingOptionError(
            "a stream over topics needs a group",
            'add .option("group", "a-name") and .option("redisUrl", "redis://host:6379"); or, to read without a group '
            "and Redis, name partitions by the option assign",
        )
    elif options.redis_url is not None:
        raise ConflictingOptionsError(
            "redisUrl is set, but a stream without the option group does not use Redis",
            'add .option("group", "a-name"), or remove redisUrl to read standalone',
        )


def _check_shared(options: SourceOptions) -> None:
    if options.redis_url is None:
        raise MissingOptionError(
            f"the group {options.group!r} needs a Redis to hold its state",
            'add .option("redisUrl", "redis://host:6379"), or set COOP_REDIS where the driver runs',
        )
    parts = options.assign is not None and set(options.assign.partitions.values()) != {(WHOLE,)}
    if parts and options.sharing == "partitions":
        raise ConflictingOptionsError(
            "assign names parts of partitions, but sharing=partitions is set",
            "assign whole partitions, or remove sharing",
        )
    if options.sharing == "never" and options.redundancy > 1:
        raise ConflictingOptionsError(
            f"sharing=never and redundancy={options.redundancy} are both set, but several members read each record",
            "remove one of them",
        )


def check_acknowledgement(options: SourceOptions) -> None:
    """Refuse the column without a group."""
    if ACKNOWLEDGEMENT in options.columns and options.group is None:
        raise ConflictingOptionsError(
            f"the option columns names {ACKNOWLEDGEMENT}, but only rows of a stream with a group can be acknowledged",
            f"remove {ACKNOWLEDGEMENT} from columns, or read a stream with the options group and redisUrl",
        )


def check_redundancy(options: SourceOptions) -> None:
    """Refuse replica sets without a group, of a group with too long a name, of joined topics, and of pinned ranges."""
    redundancy, group = options.redundancy, options.group
    if redundancy == 1:
        return
    if group is None:
        raise ConflictingOptionsError(
            f"redundancy={redundancy} is set, but only a group has replica sets",
            "remove redundancy, or add the options group and redisUrl",
        )
    if options.copartition:
        raise ConflictingOptionsError(
            f"redundancy={redundancy} and copartition are both set, but two reads of one query may join different sets",
            "remove redundancy, and give each replica set a group of its own",
        )
    longest = max(names(group, redundancy), key=len)
    if len(longest) > GROUP_NAME_MAX:
        raise InvalidOptionError(
            f"the last replica set of group {bounded(group)} would have a name of {len(longest)} characters, more than "
            f"{GROUP_NAME_MAX}",
            "use a shorter name for the group",
        )
    if options.pinned:
        raise ConflictingOptionsError(
            f"redundancy={redundancy} is set, but the option assign names key ranges, which a member of any set needs",
            "remove redundancy, and give each replica set a group of its own; or remove the key ranges of assign",
        )


def check_standby(options: SourceOptions, *, streaming: bool) -> None:
    """Refuse a standby of a batch or without a group, and beside options that give it ranges in another way."""
    if not options.standby:
        return
    if not streaming:
        raise ConflictingOptionsError(
            "standby=true is set, but a batch (spark.read) reads everything once and waits for no member",
            "remove standby",
        )
    if options.group is None:
        raise ConflictingOptionsError(
            "standby=true is set, but a stream without a group has no other member to take over from",
            "remove standby, or add the options group and redisUrl",
        )
    refused = {
        "assign names key ranges": options.pinned,
        "ordering=none is set": options.ordering == "none",
        "copartition is set": bool(options.copartition),
        "redundancy is above 1": options.redundancy > 1,
    }
    for what, refuses in refused.items():
        if refuses:
            raise ConflictingOptionsError(f"standby=true is set, but {what}", _REMEDIES_OF_STANDBY[what])


def refuse_run_of_standby(trigger: str) -> None:
    """Refuse a run that ends by itself: a standby has nothing to read until another member is lost."""
    raise ConflictingOptionsError(
        f"standby=true is set, but the query runs with {trigger}, which ends when everything is read",
        "remove standby, or use another trigger",
    )


def check_ordering(options: SourceOptions) -> None:
    """Refuse options of a stream that do not fit its ordering."""
    ordering = options.ordering
    if ordering == "key":
        return
    if options.group is None:
        raise ConflictingOptionsError(
            f"ordering={ordering} is set, but a stream without a group shares its records with no other member",
            "remove ordering, or add the options group and redisUrl",
        )
    fields, why = {
        "none": (_OF_KEY_RANGES, "members without order own no key ranges"),
        "partition": (_OF_PARTS, "in partition order each partition is read whole, by one task"),
    }[ordering]
    for name in options.names_given(fields):
        raise ConflictingOptionsError(
            f"ordering={ordering} and {name} are both set, but {why}", f"remove {name}, or set ordering=key"
        )
    if ordering == "partition" and options.function and options.per_key:
        raise ConflictingOptionsError(
            "ordering=partition is set, but the function is called key by key",
            "pass it to map_batches, or set ordering=key",
        )
    _check_no_ranges(options)


def _check_no_ranges(options: SourceOptions) -> None:
    if options.pinned:
        raise ConflictingOptionsError(
            f"ordering={options.ordering} is set, but the option assign names key ranges, which only members with "
            "ordering=key own",
            "remove the key ranges of the option assign, or set ordering=key",
        )
    if ACKNOWLEDGEMENT in options.columns:
        raise ConflictingOptionsError(
            f"ordering={options.ordering} is set, but columns names {ACKNOWLEDGEMENT}, and no record of such a "
            "group can be acknowledged by itself",
            f"remove {ACKNOWLEDGEMENT} from columns, or set ordering=key",
        )
