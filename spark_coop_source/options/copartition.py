"""The rules between `copartition` and other options. Does no IO."""

from collections.abc import Sequence

from coordinator.errors import ConflictingOptionsError, InvalidOptionError
from coordinator.values.subscription import Subscription, Topics
from spark_coop_source.options import table
from spark_coop_source.options.values import Given, Option

_OTHERS: tuple[tuple[Option[object], str], ...] = (
    (table.ASSIGN, "it names partitions and ranges of each topic; use subscribe"),
    (table.ASSIGNOR, "copartition is an assignor of its own"),
    (table.MAX_RECORDS_PER_PARTITION, "it cuts each topic into other lanes; use maxOffsetsPerTrigger"),
)


def check(given: Given, topics: Sequence[str], subscription: Subscription, *, streaming: bool | None) -> None:
    """Refuse options that do not fit joined topics. Only streams may read some of them: other reads read the rest."""
    if not topics:
        return
    for option, reason in _OTHERS:
        if option in given:
            raise ConflictingOptionsError(
                f"the options copartition and {option.name} are both set", f"remove {option.name}: {reason}"
            )
    missing = [t for t in topics if t not in subscription.names] if isinstance(subscription, Topics) else []
    if len(missing) == len(topics) or (missing and streaming is False):
        raise InvalidOptionError(
            f"option copartition names topic {missing[0]}, which the option subscribe does not name",
            "name the same topics in both options; subscribe may name more",
        )
