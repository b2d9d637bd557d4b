"""Logs that are cut by an unclean election, and topics that are deleted and created again (rule: named-data-loss).

    before    |##########|          the group has read up to 10
    cut       |######|              records 6-9 are gone, and the leader epoch rises
    later     |######======|        other records have their offsets: the group must go back to 6, and read them

Until a member has found the cut, positions may lie above new records. So the other invariants leave these out. At the
end of the schedule all of them must have arrived.
"""

from collections.abc import Mapping
from random import Random

from coordinator.values.subscription import TopicPartition
from simulation.kafka import Record, SimulatedKafka
from simulation.sink import Sink


class Cuts:
    """The cuts of one schedule. It draws by itself, so that schedules without them stay as they are."""

    def __init__(self, seed: int, kafka: SimulatedKafka, sink: Sink, *, share: float) -> None:
        self._random = Random(f"{seed} cuts")  # noqa: S311 - it must replay
        self._drawn = self._random.random() < share
        self._kafka, self._sink = kafka, sink
        self._cut: set[TopicPartition] = set()
        self._unfound: set[TopicPartition] = set()

    def __bool__(self) -> bool:
        """Whether logs may be cut in this schedule."""
        return self._drawn

    @property
    def happened(self) -> bool:
        """Whether a log was cut or created again."""
        return bool(self._cut)

    def excuses(self, record: Record) -> bool:
        """Whether positions may lie above a record: nobody has found the cut before it."""
        return record.life > 0 and record.tp in self._unfound

    def cut(self, tp: TopicPartition | None = None, most: int | None = None) -> TopicPartition:
        """Cut the log of a partition somewhere, or of this one to at most so many records: an unclean election."""
        tp = tp or self._random.choice(list(self._kafka.logs))
        end = len(self._kafka.logs[tp]) if most is None else most
        self._kafka.cut(tp, self._random.randint(max(self._kafka.beginnings[tp], end - 6), end))
        self._note(tp)
        return tp

    def create_again(self) -> str:
        """Delete a topic and create it again. A broker may keep the group's offsets of the old one for a while."""
        topic = self._random.choice(self._kafka.topics)
        self._kafka.create_again(topic, forgets=self._random.random() < 0.5)
        for tp in (tp for tp in self._kafka.logs if tp.topic == topic):
            self._note(tp)
        return topic

    def _note(self, tp: TopicPartition) -> None:
        self._cut.add(tp)
        self._unfound.add(tp)
        self._sink.cut(tp, self._kafka.records[tp])

    def found(self, positions: Mapping[TopicPartition, int]) -> None:
        """Members have moved positions: where none is above the records that nobody has read, the cut is found.

        A replay may have read new records above the cut before: then those below come after them.
        """
        for tp in tuple(self._unfound):
            new = [r.offset for r in self._kafka.records[tp] if r.life and not self._sink.settled(r)]
            if positions.get(tp, 0) <= min(new, default=len(self._kafka.logs[tp])):
                self._unfound.discard(tp)
                self._sink.excused.update(
                    r for r in self._kafka.records[tp] if r.life and r not in self._sink.delivered
                )

    def hide(self) -> None:
        """An old copy of Redis answers: it knows of no cut."""
        self._unfound |= self._cut
