"""The verbs of partition growth: recorded growths, and positions of older partitions (rule: growth-order)."""

from collections.abc import Collection, Iterable, Mapping

from coordinator.progress.growth import Growth, Segments, parsed
from coordinator.progress.segments import Progress
from coordinator.redis.calls import NOBODY, ScriptCalls
from coordinator.redis.errors import sound
from coordinator.subscription import TopicPartition


class GrowthVerbs(ScriptCalls):
    """A member asks here what new partitions must wait for. `create_positions` records the growth itself."""

    @sound
    def growths(self) -> tuple[Growth, ...]:
        """Every recorded growth; none if there is no group."""
        with self._client.reading() as redis:
            return parsed(redis.hgetall(self._keys.growth))

    def grow(self, growths: Iterable[Growth]) -> None:
        """Record growths that are missing, and ends of growths that have none."""
        k = self._keys
        flat = [text for growth in growths for text in (growth.field, growth.value)]
        self._run("grow", NOBODY, [k.meta, k.growth, k.events], *flat)

    @sound
    def positions(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, Segments]:
        """The positions of all hashes of those `partitions` that have positions, whoever owns them."""
        with self._client.reading() as redis:
            pipeline = redis.pipeline(transaction=False)
            for tp in partitions:
                pipeline.hgetall(self._keys.segments(tp))
            found = zip(partitions, pipeline.execute(), strict=True)
        segments = {tp: Progress.parse_whole(tp, text).segments for tp, text in found if text}
        return {tp: tuple((s.hashes, s.position) for s in of_tp) for tp, of_tp in segments.items()}
