"""The report of a redrive, for people and programs. Pure."""

from dataclasses import dataclass

from coordinator.tools.operations.redrive_plan import Order, RedrivePlan
from coordinator.values.key_hash import hash_key


@dataclass(frozen=True, slots=True)
class LateKey:
    """A key whose redriven records come after later records of it."""

    topic: str
    partition: int
    key_hash: str  # 16 hex digits
    first: int  # offset of its first dead letter in the topic
    records: int  # of the key, to redrive
    late: int  # of them, those that a later record precedes
    later: int  # records of the key after the first one; they are delivered first


@dataclass(frozen=True, slots=True)
class RedriveView:
    """What a redrive would do, or has done."""

    records: int
    keys: int
    others: int  # dead letters of other groups or topics
    strange: int  # records of the dead-letter topic that are no dead letters
    late_keys: tuple[LateKey, ...] | None  # those with the most later records first; None: not looked at

    @property
    def late(self) -> int:
        """Records that cannot be kept in order."""
        return sum(key.late for key in self.late_keys or ())


def redrive_view(planned: RedrivePlan, order: Order | None) -> RedriveView:
    """The report of a plan; `order` is that of a dry run."""
    keys = {(letter.source, letter.key) for letter in planned.letters if letter.key is not None}
    late = (
        None if order is None else tuple(sorted(_late(order), key=lambda x: (-x.later, x.topic, x.partition, x.first)))
    )
    return RedriveView(len(planned.letters), len(keys), planned.others, planned.strange, late)


def _late(order: Order) -> list[LateKey]:
    return [
        LateKey(*tp, f"{hash_key(key):016x}", of_key.offsets[0], len(of_key.offsets), of_key.late, of_key.later)
        for (tp, key), of_key in order.keys.items()
        if of_key.late
    ]
