"""The class that a user names in the option `ownership.listener`: told when key ranges change hands.

    from coordinator.assignment.ownership_listener import OwnershipListener

    class Cache(OwnershipListener):
        def on_lost(self, ranges):
            forget(ranges)

One is made for each query, without arguments, in the reader process beside the driver; importable there. It is called
between two batches, on the reader's main thread: while a method runs, nothing is planned, so return quickly. What it
raises is logged, and changes nothing.
"""

from collections.abc import Mapping

from coordinator.errors import InvalidOptionError
from coordinator.quoting import quoted
from coordinator.ranges import HashRange
from coordinator.subscription import TopicPartition
from coordinator.user_class import found, made

KeyRanges = Mapping[TopicPartition, tuple[HashRange, ...]]
"""Partition -> hash ranges, ascending, disjoint; a whole partition is [0, 2^63 - 1]. `coordinator.key_hash` hashes."""

METHODS = ("on_assigned", "on_revoked", "on_lost")


class OwnershipListener:
    """Override what you want to hear; the methods here do nothing."""

    def on_assigned(self, ranges: KeyRanges) -> None:
        """These ranges are this member's from now on: their records come to this query's next batches."""

    def on_revoked(self, ranges: KeyRanges) -> None:
        """These ranges were given up in order: all that this query read of them is complete in its sink."""

    def on_lost(self, ranges: KeyRanges) -> None:
        """These ranges were taken away: the lease had ended, a batch took too long, or state was lost.

        Told when this process learns of it, which may be long after another member began to read them. What its
        sink has not completed of them may come again elsewhere.
        """


def check(name: str) -> None:
    """Raise `InvalidOptionError` unless `module:Class` is there and has the methods; makes no instance."""
    if ":" not in name:
        raise InvalidOptionError(f"{quoted(name)} is not a class", "name one as module:Class")
    thing = found("ownership listener", name)
    if missing := [m for m in METHODS if not callable(getattr(thing, m, None))]:
        raise InvalidOptionError(
            f"{quoted(name)} is not an ownership listener: it has no method {missing[0]}",
            "derive it from coordinator.assignment.ownership_listener.OwnershipListener",
        )


def listener(name: str) -> OwnershipListener:
    """The listener of `module:Class`; raises `InvalidOptionError` if it is none, or cannot be made."""
    check(name)
    return made("ownership listener", name)  # type: ignore[return-value]
