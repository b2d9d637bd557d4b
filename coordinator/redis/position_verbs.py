"""The verbs about positions, declared; and their arguments and replies as texts. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from coordinator.progress.growth import Growth
from coordinator.progress.ownership import Fact, Facts
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.group_state import KnownTopic
from coordinator.redis.replies import Status
from coordinator.redis.script_texts import pairs, place
from coordinator.redis.verb import Reply, fields, nothing, number, truth, verb
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import Topic, TopicPartition


def _status(reply: Reply) -> Status:
    return Status(int(reply["reset"]), known_topics(reply["topics"]), reply["founding"], int(reply["alive"]))


STATUS = verb("status", "meta topics leases", "", _status)
CREATE = verb(
    "create_positions",
    "meta topics events growth proofs",
    "nonce grace_ms counts joined places",
    number("placed"),
    partitions="segments ics stable",
)
ACQUIRE = verb(
    "acquire", "meta leases member events topics batches", "wanted", fields, partitions="owners segments ics"
)
HAND_OUT = verb(
    "hand_out",
    "meta leases member batches topics events policy",
    "most size ends",
    fields,
    partitions="segments ics handed",
)
AUTHORIZE = verb(
    "authorize",
    "meta leases member topics batches",
    "reset digest replayed as_planned ids lanes",
    fields,
    partitions="owners",
)
SEAL = verb(
    "seal",
    "meta leases member failing events",
    "digest ends where delay_ms records",
    truth("sealed"),
    partitions="owners",
)
COMMIT = verb(
    "commit",
    "meta leases member topics batches",
    "reset digest ids facts",
    fields,
    partitions="owners segments ics stable",
)
CLAIM = verb(
    "claim", "meta topics", "reset ids facts leader_epochs", nothing, partitions="owners segments ics stable epoch"
)
RECREATE = verb(
    "recreate",
    "meta topics events strikes failing",
    "places extents",
    nothing,
    partitions="owners segments ics stable log_end=end epoch reserved",
)
RECOVER = verb(
    "recover",
    "meta leases topics events batches leaving applications targets assignment growth working policy proofs",
    "nonce why reset growths policies parts places extents",
    fields,
    partitions="owners segments ics stable epoch",
)
SHOW = verb("show", "meta", "texts at_ms", nothing, hashes="")
GROW = verb("grow", "meta growth events", "growths", nothing)


def wanted_text(tp: TopicPartition, hashes: Iterable[HashRange], one: Collection[str]) -> str:
    """Wanted hashes of a partition; with the word `one` if each range is to have one lane epoch."""
    word = "one" if tp.topic in one else ""
    return "".join(f"{h} {word};" for h in hashes)


def known_topics(texts: Sequence[str]) -> dict[str, KnownTopic]:
    """The topics of a group, of field, value, ..."""
    return {topic: KnownTopic.parse(topic, text) for topic, text in pairs(texts).items()}


def facts_of(text: str) -> tuple[Fact, ...]:
    """The facts of a text."""
    return tuple(Fact.parse(*fact.split()) for fact in text.split(";") if fact)


def topic_ids(offset: StreamOffset, partitions: Iterable[TopicPartition]) -> dict[str, str]:
    """The ids that an offset has of the topics of these partitions."""
    return {tp.topic: offset.topic_ids.get(tp.topic, "-") for tp in partitions}


def fact_texts(facts: Facts) -> list[str]:
    """The facts of each partition, as scripts read them."""
    return [
        "".join(f"{f.hashes} {f.epoch} {f.done};" if f.epoch else f"{f.hashes} {f.done} ;" for f in of_tp)
        for of_tp in facts.values()
    ]


def growth_texts(growths: Iterable[Growth]) -> list[str]:
    """Name and text of each growth."""
    return [text for growth in growths for text in (growth.field, growth.value)]


def parts_text(facts: Iterable[Fact]) -> str:
    """The positions of some hashes, as scripts read them."""
    return "".join(f"{f.hashes} {f.position};" for f in facts)


def places_of(topics: Mapping[str, Topic], positions: Mapping[TopicPartition, int | None]) -> list[dict[str, str]]:
    """The positions as scripts read them; "-" where there is none.

    A topic has the partitions that the caller sees, and those of the positions: others assign these, or saw it grow.
    """
    count = {name: topic.partitions[-1] + 1 for name, topic in topics.items()}
    for tp in positions:
        count[tp.topic] = max(count[tp.topic], tp.partition + 1)
    return [place(tp, topics[tp.topic].id, count[tp.topic], position) for tp, position in positions.items()]
