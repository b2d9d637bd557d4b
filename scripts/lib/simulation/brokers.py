"""Brokers whose log ends are low for a while, though no log is ever cut. Some schedules have them.

election      the new leader knows its high watermark only once its followers have fetched
late mirror   a broker takes long for a write of the group's offsets
transaction   it is open from here on: members that read committed transactions see no further
silence       the leader of a partition does not answer for a while: it is dead or frozen; also of a new partition
"""

from random import Random

from coordinator.progress.data_loss import LOW_MS
from coordinator.values.subscription import TopicPartition


class Brokers:
    """The low ends of one schedule. It draws by itself, so that schedules without them stay as they are."""

    def __init__(self, seed: int | None = None) -> None:
        """Without a seed, all brokers are well."""
        self._random = Random(f"{seed} brokers")  # noqa: S311 - it must replay
        self._odd = seed is not None and self._random.random() < 0.4
        self._slow = Random(f"{seed} slow mirror")  # noqa: S311 - likewise
        self.writes_late = seed is not None and self._slow.random() < 0.15
        self.late_writes = 0
        self._marks: dict[TopicPartition, tuple[int, int]] = {}  # until this time, this high watermark
        self._stable: dict[TopicPartition, int] = {}  # the first offset of an open transaction
        self._silent: dict[TopicPartition, int] = {}  # until this time
        self._late = Random(f"{seed} late leaders")  # noqa: S311 - likewise

    def __bool__(self) -> bool:
        """Whether log ends are low at times."""
        return self._odd

    def elect(self, tp: TopicPartition, beginning: int, end: int, now_ms: int) -> int:
        """Another broker leads a partition. Its high watermark is this one, for less time than members look again."""
        mark = self._random.randint(beginning, end)
        self._marks[tp] = now_ms + self._random.randint(500, LOW_MS - 1_000), mark
        return mark

    def silence(self, tp: TopicPartition, now_ms: int) -> int:
        """The leader of a partition does not answer from now on, for this time in ms."""
        length_ms = self._random.randint(500, 2 * LOW_MS)
        self._silent[tp] = now_ms + length_ms
        return length_ms

    def created(self, tp: TopicPartition, now_ms: int) -> None:
        """A partition is there; the leader of some does not answer at first."""
        if self._odd and self._late.random() < 0.25:
            self._silent[tp] = now_ms + self._late.randint(500, 2 * LOW_MS)

    def silent(self, tp: TopicPartition, now_ms: int) -> bool:
        """Whether the leader of a partition does not answer now."""
        return now_ms < self._silent.get(tp, 0)

    def begin_or_end_transaction(self, tp: TopicPartition, end: int) -> bool:
        """Begin a transaction at the end of a log, or end the one that is open; whether one is open now."""
        if self._stable.pop(tp, None) is None:
            self._stable[tp] = end
        return tp in self._stable

    def end(self, tp: TopicPartition, length: int, now_ms: int, *, committed: bool = False) -> int:
        """The end of a log of this length, as its leader answers now."""
        until_ms, mark = self._marks.get(tp, (0, length))
        end = mark if now_ms < until_ms else length
        return min(end, self._stable.get(tp, end)) if committed else end

    def reads_committed(self) -> bool:
        """Whether a driver that starts now reads only committed transactions."""
        return self._odd and self._random.random() < 0.5

    def mirror_delay_ms(self) -> int:
        """How long a write of the mirror takes: others may write newer offsets meanwhile."""
        if not self.writes_late or self._slow.random() < 0.6:
            return 0
        self.late_writes += 1
        return self._slow.randint(500, 12_000)

    def forget(self, tp: TopicPartition) -> None:
        """The log of a partition is another one."""
        self._marks.pop(tp, None)
        self._stable.pop(tp, None)

    def recover(self) -> None:
        """Followers have fetched, all leaders answer, and all transactions have ended."""
        self.writes_late = False
        self._silent.clear()
        self._marks.clear()
        self._stable.clear()
