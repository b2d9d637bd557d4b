"""Records a schedule as steps of a model in `specs/`: what passes between members and Redis, and what is then there.

    lane      a partition at one of the key hashes of the simulation, so cuts of ranges do not show
    step      an action, and the state of Redis after it, as far as that has changed

It reads Redis itself after each verb, and judges nothing. Each model has a recorder of its own in a module of its name.
"""

import json
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import redis

from coordinator.redis.client import RedisClient, TextRedis
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller
from coordinator.redis.verb import Reply
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition
from coordinator.values.verdicts import Verdict
from simulation.kafka import HASHES, SimulatedKafka

Step = dict[str, Any]

OUTSIDE = "is not in the model"
"""The end of a reason for which a record ends: a call that is no step of the model has changed what the model has."""

_PARTITION = re.compile(r":owners:(.+):(\d+)$")


class Recorder(RedisClient, ABC):
    """The steps of one schedule. It takes the place of the client that runs all scripts; `text` decodes replies."""

    def __init__(self, client: RedisClient, text: redis.Redis, keys: GroupKeys, kafka: SimulatedKafka) -> None:
        self._client, self._text, self._keys, self._tps = client, text, keys, sorted(kafka.logs)
        self.lanes = [(tp, key_hash) for tp in self._tps for key_hash in HASHES]
        self.repeats = 0  # steps that it leaves out, because they repeat one that has changed nothing
        self.beside: Counter[str] = Counter()  # verbs and verdicts that are no step
        self.ends_at: list[str] = []  # why records end before the schedule
        self._first: dict[int, int] = {}  # of a lane: its first position

    @property
    @abstractmethod
    def records(self) -> Sequence[Sequence[Step]]:
        """The steps, of each part of the schedule that the model sees by itself."""

    @abstractmethod
    def noted(self, what: str, caller: Caller, fact: Any) -> None:
        """A step of Spark or of the sink, which Redis does not see: the process of this caller took it."""

    @abstractmethod
    def _ran(self, verb: str, keys: Sequence[str], asked: Mapping[str, Any], answer: Reply | Verdict) -> None:
        """A script has run."""

    def run(self, verb: str, keys: Sequence[str], args: Sequence[str]) -> Reply:
        """Run a script, and record it with its reply or verdict."""
        try:
            reply = self._client.run(verb, keys, args)
        except Verdict as verdict:
            self._ran(verb, keys, json.loads(args[0]), verdict)
            raise
        self._ran(verb, keys, json.loads(args[0]), reply)
        return reply

    @contextmanager
    def reading(self) -> Iterator[TextRedis]:
        """The plain client."""
        with self._client.reading() as plain:
            yield plain

    # -- lanes ---------------------------------------------------------------------------------

    def _in(self, ranges: Mapping[TopicPartition, Iterable[HashRange]]) -> set[int]:
        """The numbers of the lanes in these ranges."""
        lanes = enumerate(self.lanes, 1)
        return {n for n, (tp, key_hash) in lanes if any(key_hash in hashes for hashes in ranges.get(tp, ()))}

    def _within(self, tps: Iterable[TopicPartition], texts: Iterable[str]) -> set[int]:
        """The same, of a text `lo-hi ...;...` for each partition."""
        parts = zip(tps, texts, strict=True)
        return self._in(
            {tp: [HashRange.parse(part.split()[0]) for part in text.split(";") if part] for tp, text in parts}
        )

    def _authorized(self, tps: Sequence[TopicPartition], lanes: Sequence[str], owned: str) -> set[int]:
        """The lanes of a call of `authorize` that its reply names."""
        lines = zip(_lines(owned, tps), lanes, strict=True)
        return self._within(tps, [line.replace("all", asked) for line, asked in lines])

    def _refused(self, tps: Sequence[TopicPartition], refused: str) -> set[int]:
        """The lanes that the reply of `commit` names."""
        return self._within(tps, _lines(refused, tps))

    def _relative(self, n: int, offset: int) -> int:
        """An offset of a lane, by its number from 0: its first position is 0."""
        return offset - self._first.setdefault(n, offset)

    def _position(self, n: int, segments: Iterable[tuple[HashRange, str]]) -> int:
        """The position of a lane, by its number from 0, among the segments of its partition."""
        offset = at(segments, self.lanes[n][1])
        return self._relative(n, int(offset)) if offset else 0


def partitions(keys: Iterable[str]) -> list[TopicPartition]:
    """The partitions of a call, from the names of its keys."""
    return [TopicPartition(m[1], int(m[2])) for m in map(_PARTITION.search, keys) if m]


def by_hashes(fields: Mapping[str, str]) -> list[tuple[HashRange, str]]:
    """The fields of a hash whose names are ranges."""
    return [(HashRange.parse(hashes), value) for hashes, value in fields.items()]


def at(values: Iterable[tuple[HashRange, str]], key_hash: int) -> str:
    """The value of the range of a key hash; empty if there is none."""
    return next((value for hashes, value in values if key_hash in hashes), "")


def _lines(text: str, tps: Sequence[TopicPartition]) -> list[str]:
    """A line for each partition."""
    return text.split("\n") if tps else []
