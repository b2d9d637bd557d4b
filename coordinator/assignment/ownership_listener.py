"""The class of the option `ownershipListener`: its methods are called when key ranges change their owner.

    from coordinator.assignment.ownership_listener import OwnershipListener

    class Cache(OwnershipListener):
        def on_lost(self, ranges):
            forget(ranges)

Each query makes one instance, without arguments, in the reader process of the driver; it must be importable
there. Its methods run between two batches, on the reader's main thread: no batch is planned meanwhile, so return
quickly. Its exceptions are logged, and change nothing.
"""

from collections.abc import Mapping

from coordinator.errors import InvalidOptionError
from coordinator.errors.quoting import quoted
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition
from coordinator.values.user_class import found, instance

KeyRanges = Mapping[TopicPartition, tuple[HashRange, ...]]
"""Partition -> hash ranges, ascending, disjoint; a whole partition is [0, 2^63 - 1]. See `values.key_hash`."""

METHODS = ("on_assigned", "on_revoked", "on_lost")


class OwnershipListener:
    """Override the methods that you need; these do nothing."""

    def on_assigned(self, ranges: KeyRanges) -> None:
        """This member owns these ranges from now on: this query's next batches read their records."""

    def on_revoked(self, ranges: KeyRanges) -> None:
        """This member has released these ranges: all records of them that it read are in the sink."""

    def on_lost(self, ranges: KeyRanges) -> None:
        """This member has lost these ranges: the lease had ended, a batch took too long, or state was lost.

        The call may come long after another member began to read them. Records that are not in the sink may be
        delivered again elsewhere.
        """


def check(name: str) -> None:
    """Raise `InvalidOptionError` unless `module:Class` is there and has the methods; makes no instance."""
    if ":" not in name:
        raise InvalidOptionError(f"{quoted(name)} is not a class", "name one as module:Class")
    thing = found("ownership listener", name)
    if missing := [m for m in METHODS if not callable(getattr(thing, m, None))]:
        raise InvalidOptionError(
            f"{quoted(name)} is not an ownership listener: it has no method {missing[0]}",
            "derive it from spark_coop_source.OwnershipListener",
        )


def listener(name: str) -> OwnershipListener:
    """The listener of `module:Class`; raises `InvalidOptionError` if it is none, or cannot be made."""
    check(name)
    return instance("ownership listener", name)  # type: ignore[return-value]
