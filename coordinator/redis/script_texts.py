"""Texts and lists as scripts read and answer them. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from coordinator.progress.ownership import Owned
from coordinator.values.ranges import HashRange, offsets_of
from coordinator.values.subscription import TopicPartition


def flat(fields: Mapping[str, str]) -> list[str]:
    """Field, value, field, value ... as scripts read a hash."""
    return [text for field in fields.items() for text in field]


def pairs(flat_texts: Sequence[str]) -> dict[str, str]:
    """The hash of such a list."""
    return dict(zip(flat_texts[::2], flat_texts[1::2], strict=True))


def owned_text(owned: Iterable[Owned]) -> str:
    """Ranges at their lane epochs, as scripts read them: `lo-hi epoch;` for each, or `lo-hi epoch 120-159,171-240;`."""
    return "".join(f"{o.hashes} {o.epoch}{' ' * bool(o.offsets)}{','.join(map(str, o.offsets))};" for o in owned)


def owned_of(text: str) -> tuple[Owned, ...]:
    """The ranges of such a text."""
    return tuple(_owned(*owned.split()) for owned in text.split(";") if owned)


def _owned(hashes: str, epoch: str, offsets: str = "") -> Owned:
    return Owned(HashRange.parse(hashes), epoch, offsets_of(offsets.replace(",", " ")) if offsets else ())


def ranges_text(hashes: Iterable[HashRange]) -> str:
    """Ranges as scripts read them: `lo-hi ;` for each."""
    return "".join(f"{h} ;" for h in hashes)


def place(tp: TopicPartition, topic_id: str, count: int, position: int | None) -> dict[str, str]:
    """A position as scripts read it; "-" for none. `count` is the number of the topic's partitions."""
    where = {"topic": tp.topic, "id": topic_id, "count": str(count), "partition": str(tp.partition)}
    return where | {"position": "-" if position is None else str(position)}
