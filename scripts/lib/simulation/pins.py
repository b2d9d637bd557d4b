"""Pinned schedules: each checkpoint names ranges of a cut of the hash space. Some drivers are spares, some are misfits.

Half of the misfits name ranges across those of others. The other half are assigned their ranges by the group.
"""

from collections.abc import Collection
from random import Random

from coordinator.values.hash_map import missing
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import Assigned, Subscription, TopicPartition, Topics

Pinned = tuple[HashRange, ...]
"""The ranges that a driver names, in every partition; empty if the group assigns its ranges."""

_MISFITS = 3  # parts of a cut that fits no other


class Pins:
    """The cut of one schedule. It draws by itself, so that schedules without pins stay as they are."""

    def __init__(self, seed: int, *, possible: bool) -> None:
        self._random = Random(f"pins {seed}")  # noqa: S311 - it must replay
        self._cut = ()
        self._may_assign = Random(f"assign {seed}").random() < 0.3  # noqa: S311 - likewise
        if possible and self._random.random() < 0.15:
            self.cut_anew()

    _cut: tuple[Pinned, ...]

    def __bool__(self) -> bool:
        """Whether the drivers of this schedule are pinned."""
        return bool(self._cut)

    def cut_anew(self) -> None:
        """Cut the hash space in other parts. A part may have two ranges."""
        parts = cuts(self._random.choice((1, 2, 4)))
        odd = len(parts) > 2 and self._random.random() < 0.3
        self._cut = (tuple(parts[::2]), tuple(parts[1::2])) if odd else tuple((part,) for part in parts)

    def assigns(self, *, quiet: bool) -> bool:
        """Whether a driver that starts names the partitions of now in Spark's form; none does at the quiet end."""
        return not (quiet or self._cut) and self._may_assign and self._random.random() < 0.3

    def unread(self, named: Collection[Pinned]) -> list[Pinned]:
        """The parts of the cut that nobody names."""
        return [part for part in self._cut if part not in named]

    def drawn(self, before: Pinned, named: Collection[Pinned], *, quiet: bool) -> Pinned:
        """The ranges of a driver that starts, on a checkpoint with these ranges before."""
        if not self._cut:
            return ()
        if not quiet and self._random.random() < 0.1:
            return self._random.choice(((), cuts(_MISFITS)[self._random.randrange(_MISFITS) :][:1]))
        unread = self.unread(named)
        if before in (unread if quiet else self._cut) and self._random.random() < 0.8:
            return before
        return self._random.choice(unread or self._cut)


def subscription(
    pinned: Pinned, partitions: Collection[TopicPartition], topics: tuple[str, ...], *, assigned: bool = False
) -> Subscription:
    """The subscription of a driver; `assigned`: to the partitions of now, in Spark's form."""
    if assigned and not pinned:
        return Assigned(dict.fromkeys(partitions, (WHOLE,)))
    return Assigned(dict.fromkeys(partitions, pinned), pinned=True) if pinned else Topics(topics)


def outside(hashes: HashRange, pinned: Pinned) -> bool:
    """Whether a pinned driver names only a part of these hashes, or none."""
    return bool(pinned and missing(hashes, pinned))
