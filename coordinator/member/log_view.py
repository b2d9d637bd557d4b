"""What this process last saw of Kafka: topics at most a second old, and the bounds of their logs."""

from collections.abc import Iterable, Mapping

from coordinator.clock import Clock
from coordinator.errors import UnknownTopicError
from coordinator.ports import Log
from coordinator.progress.leader_epochs import Extents
from coordinator.subscription import Assigned, Bounds, Subscription, Topic, TopicPartition

TOPICS_MS = 1_000  # how old the list of topics and partitions may be


class LogView:
    """A cache in front of the log; part of the service's state, on its thread."""

    def __init__(self, log: Log, subscription: Subscription, clock: Clock) -> None:
        self._log, self._subscription, self._clock = log, subscription, clock
        self._topics: Mapping[str, Topic] = {}
        self._partitions: tuple[TopicPartition, ...] = ()
        self._looked_at: int | None = None
        self._epoch_ends: dict[tuple[str, TopicPartition, int, int], int | None] = {}
        self._beginnings: dict[TopicPartition, int] | None = None  # of all partitions, as old as the topics
        self.bounds: Mapping[TopicPartition, Bounds] = {}

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The subscribed topics by name, as of the last refresh."""
        if self._looked_at is None:
            self.ask()
        return self._topics

    def refresh(self) -> None:
        """Ask Kafka for the topics again, if what is known is a second old."""
        if self._looked_at is None or self._clock.now_ms() - self._looked_at >= TOPICS_MS:
            self.ask()

    def ask(self) -> None:
        """Ask Kafka for the topics now: log bounds seen before this are of the topic ids seen after it."""
        found, self._looked_at = self._log.topics(self._subscription), self._clock.now_ms()
        self._beginnings = None
        if found != self._topics:
            self._topics = found
            self._partitions = tuple(TopicPartition(t, p) for t, of in sorted(found.items()) for p in of.partitions)

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Every partition of the subscribed topics, ascending."""
        return self._partitions if self.topics else ()

    @property
    def partitions_are_given(self) -> bool:
        """Whether the subscription names partitions, so that a topic is not seen to grow."""
        return isinstance(self._subscription, Assigned)

    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """Where logs end now, whatever transactions are open; also of partitions that are not subscribed to."""
        return self._log.high_watermarks(partitions)

    def ends_of_epochs(self, extents: Extents) -> dict[TopicPartition, int]:
        """Where leader epochs end in logs that had a newer one at the last look; each is asked for once."""
        older = {tp: x.epoch for tp, x in extents.items() if tp in self.bounds and x.epoch < self.bounds[tp].epoch}
        keys = {tp: (self.topics[tp.topic].id, tp, epoch, self.bounds[tp].epoch) for tp, epoch in older.items()}
        if wanted := {tp: epoch for tp, epoch in older.items() if keys[tp] not in self._epoch_ends}:
            ends = self._log.ends_of_epochs(wanted)
            self._epoch_ends |= {keys[tp]: ends.get(tp) for tp in wanted}
        found = {tp: self._epoch_ends[key] for tp, key in keys.items()}
        return {tp: end for tp, end in found.items() if end is not None}

    def look(self) -> Mapping[TopicPartition, Bounds]:
        """The bounds of every partition's log: ends of now, beginnings as old as the topics; one request a broker.

        A topic that vanished meanwhile is left out of a pattern. The same mapping as before where nothing has come.
        """
        try:
            found = self._log.bounds(self.partitions, self._beginnings)
        except UnknownTopicError:
            self.ask()
            found = self._log.bounds(self.partitions)
        self._beginnings = (
            {tp: b.beginning for tp, b in found.items()} if self._beginnings is None else self._beginnings
        )
        if found != self.bounds:
            self.bounds = found
        return self.bounds
