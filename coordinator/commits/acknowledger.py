"""Collects what was done and commits it when it has become much (K's max.num.ranges.to.commit).

Knows the Commit API only. Not safe for several threads: each worker has its own.
"""

from coordinator.commits.commit_api import RANGES_MAX, CommitApi, Committed
from coordinator.errors import IndividualCommitTooOldError
from coordinator.ranges import OffsetRange
from coordinator.subscription import TopicPartition


class Acknowledger:
    """Acknowledge records one by one; `flush` at the end, and whenever what is done should count."""

    def __init__(self, commits: CommitApi, max_ranges: int | None = None) -> None:
        """Commits to `commits` once more than `max_ranges` ranges are collected (default: as the query said)."""
        self._commits = commits
        self._most = min(RANGES_MAX - 1, commits.max_ranges if max_ranges is None else max_ranges)
        self._done: dict[TopicPartition, list[OffsetRange]] = {}

    def done(self, tp: TopicPartition, offsets: OffsetRange) -> Committed | None:
        """Those offsets are done; the answer if this was what had to be committed. Raises what `commit` raises."""
        collected = self._done.setdefault(tp, [])
        if collected and collected[-1].until == offsets.start:
            collected[-1] = OffsetRange(collected[-1].start, offsets.until)
        else:
            collected.append(offsets)
        return self._flush(tp) if len(collected) > self._most else None

    def flush(self) -> dict[TopicPartition, Committed]:
        """Commit all that is collected; what cannot be committed yet stays collected."""
        return {tp: self._flush(tp) for tp in list(self._done)}

    def _flush(self, tp: TopicPartition) -> Committed:
        try:
            answer = self._commits.commit(tp, self._done[tp])
        except IndividualCommitTooOldError:
            del self._done[tp]  # it counts already
            raise
        del self._done[tp]
        return answer
