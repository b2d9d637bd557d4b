"""What this process last saw of Kafka: topics at most a second old, and the bounds of their logs."""

from collections.abc import Mapping

from coordinator.clock import Clock
from coordinator.errors import UnknownTopicError
from coordinator.ports import Log
from coordinator.subscription import Bounds, Subscription, Topic, TopicPartition

TOPICS_MS = 1_000  # how old the list of topics and partitions may be


class LogView:
    """A cache in front of the log; part of the service's state, on its thread."""

    def __init__(self, log: Log, subscription: Subscription, clock: Clock) -> None:
        self._log, self._subscription, self._clock = log, subscription, clock
        self._topics: Mapping[str, Topic] = {}
        self._looked_at: int | None = None
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
        self._topics, self._looked_at = self._log.topics(self._subscription), self._clock.now_ms()

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """Every partition of the subscribed topics, ascending."""
        return tuple(TopicPartition(t, p) for t, topic in sorted(self.topics.items()) for p in topic.partitions)

    def look(self) -> Mapping[TopicPartition, Bounds]:
        """The bounds of every partition's log, now; a topic that vanished meanwhile is left out of a pattern."""
        try:
            self.bounds = self._log.bounds(self.partitions)
        except UnknownTopicError:
            self.ask()
            self.bounds = self._log.bounds(self.partitions)
        return self.bounds
