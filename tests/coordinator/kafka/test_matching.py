"""The topics of a pattern, on a real broker: all topics are asked for rarely, the known ones each time."""

import re
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field

import pytest

from coordinator.kafka import offsets
from coordinator.kafka.connection import KafkaConnection, Session
from coordinator.kafka.matching import LEAST_S, Matching
from topics import Kafka


@dataclass
class Looks:
    """A pattern's topics by a clock that stands still, and what was asked for: the number of names, None for all."""

    kafka: Kafka
    connection: KafkaConnection
    word: str
    asked: list[int | None] = field(default_factory=list)
    now: float = 0.0
    takes: float = 0.0  # each reading of the clock moves it so far

    def __post_init__(self) -> None:
        self.matching = Matching(self.clock)

    def clock(self) -> float:
        self.now += self.takes
        return self.now

    def create(self) -> str:
        return self.kafka.create_topic(self.word)

    def ids(self, *, quick: bool = True) -> dict[str, str]:
        regex = re.compile(f"^{self.word}")
        found = self.connection.ask("topics", lambda session: self.matching.topics(session, regex, quick=quick))
        return {topic.name: topic.id for topic in found}


@pytest.fixture
def looks(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> Iterator[Looks]:
    connection = KafkaConnection({"bootstrap_servers": kafka.bootstrap}, retries=3, retry_interval_ms=200)
    with closing(connection):
        made = Looks(kafka, connection, f"match-{uuid.uuid4().hex[:8]}")
        ask = offsets._metadata

        def counted(session: Session, names: list[str] | None) -> object:
            made.asked.append(None if names is None else len(names))
            return ask(session, names)

        monkeypatch.setattr(offsets, "_metadata", counted)
        yield made


def test_known_topics_are_asked_for_by_name_until_a_look_at_all_is_due(looks: Looks) -> None:
    one = looks.create()
    assert looks.ids().keys() == {one}
    two = looks.create()
    assert looks.ids().keys() == {one}
    looks.now = LEAST_S
    assert looks.ids().keys() == {one, two}
    assert looks.asked == [None, 1, None]


def test_a_look_at_all_that_takes_long_comes_rarely(looks: Looks) -> None:
    one = looks.create()
    looks.takes = 0.35
    looks.ids()
    looks.takes, two = 0.0, looks.create()
    looks.now += 13.9
    assert looks.ids().keys() == {one}
    looks.now += 0.2
    assert looks.ids().keys() == {one, two}


def test_a_look_that_is_not_quick_sees_a_new_topic_at_once(looks: Looks) -> None:
    looks.ids()
    one = looks.create()
    assert looks.ids().keys() == set()
    assert looks.asked == [None], "no known topic, so nothing is asked for"
    assert looks.ids(quick=False).keys() == {one}


def test_a_topic_that_is_gone_or_created_again_is_seen_at_once(looks: Looks) -> None:
    one, two = looks.create(), looks.create()
    before = looks.ids()
    looks.kafka.recreate_topic(one)
    after = looks.ids()
    assert (set(after), after[one] != before[one], after[two]) == ({one, two}, True, before[two])
    looks.kafka.delete_topic(two)
    assert looks.ids().keys() == {one}
    assert looks.asked[-2:] == [2, None]
