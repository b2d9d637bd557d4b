"""The report of a redrive, for people and programs. Pure."""

from dataclasses import dataclass
from typing import Annotated

from coordinator.tools.fields import HashOfKey, Means, PartitionNumber, TopicField
from coordinator.tools.operations.redrive_plan import Order, RedrivePlan
from coordinator.values.key_hash import hash_key


@dataclass(frozen=True, slots=True)
class LateKey:
    """A key whose redriven records come after later records of it."""

    topic: TopicField
    partition: PartitionNumber
    key_hash: HashOfKey
    first_offset: Annotated[int, Means("Where its first dead letter was in the topic.", "FIRST OFFSET")]
    records: Annotated[int, Means("Its records to redrive.", "RECORDS")]
    out_of_order: Annotated[int, Means("Those that a later record precedes.", "OUT OF ORDER")]
    later_records: Annotated[int, Means("Records of the key after the first one.", "LATER RECORDS")]


@dataclass(frozen=True, slots=True)
class RedriveView:
    """What a redrive would do, or has done."""

    records: Annotated[int, Means("Records to redrive.")]
    keys: Annotated[int, Means("Their keys.")]
    others: Annotated[int, Means("Dead letters of other groups or topics, which are left out.")]
    strange: Annotated[int, Means("Records of the dead-letter topic that are not dead letters.")]
    out_of_order: Annotated[int, Means("Records that come after later records of their keys.")]
    late_keys: Annotated[tuple[LateKey, ...] | None, Means("The keys of these records; null with `--execute`.")]


def redrive_view(planned: RedrivePlan, order: Order | None) -> RedriveView:
    """The report of a plan; `order` is that of a dry run."""
    keys = {(letter.source, letter.key) for letter in planned.letters if letter.key is not None}
    late = None if order is None else _late(order)
    out_of_order = sum(key.out_of_order for key in late or ())
    return RedriveView(len(planned.letters), len(keys), planned.others, planned.strange, out_of_order, late)


def _late(order: Order) -> tuple[LateKey, ...]:
    """Those with the most later records first."""
    late = (
        LateKey(*tp, f"{hash_key(key):016x}", of_key.offsets[0], len(of_key.offsets), of_key.late, of_key.later)
        for (tp, key), of_key in order.keys.items()
        if of_key.late
    )
    return tuple(sorted(late, key=lambda key: (-key.later_records, key.topic, key.partition, key.first_offset)))
