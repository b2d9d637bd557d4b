"""Collects what was done and commits it when it has become much (`max.num.ranges.to.commit`).

Knows the Commit API only. Safe for several threads: while one commits, the others wait.
"""

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

from coordinator.commits.commit_api import RANGES_MAX, CommitApi, Committed
from coordinator.errors import CommitBeyondReadError, IndividualCommitTooOldError, MaxIndividualCommitReachedError
from coordinator.ranges import OffsetRange, parted, union
from coordinator.subscription import TopicPartition


class Acknowledger:
    """Acknowledge records one by one; `flush` at the end, and whenever what is done should count."""

    def __init__(self, commits: CommitApi, max_ranges: int | None = None) -> None:
        """Commits to `commits` once more than `max_ranges` ranges are collected (default: as the query said)."""
        self._commits = commits
        self._most = commits.max_ranges if max_ranges is None else max_ranges
        self._done: dict[TopicPartition, list[OffsetRange]] = {}
        self._lock = Lock()  # of what is collected: a commit replaces it

    def done(self, tp: TopicPartition, offsets: OffsetRange) -> Committed | None:
        """Those offsets are done; the answer if this was what had to be committed. Raises what `commit` raises."""
        with self._lock:
            collected = self._done.setdefault(tp, [])
            if collected and collected[-1].until == offsets.start:
                collected[-1] = OffsetRange(collected[-1].start, offsets.until)
            else:
                collected.append(offsets)
            return self._flush(tp) if len(collected) > self._most else None

    def flush(self) -> dict[TopicPartition, Committed]:
        """Commit all that is collected; what cannot be committed yet stays collected. Raises what `commit` raises."""
        with self._lock:
            return {tp: self._flush(tp) for tp in list(self._done)}

    def _flush(self, tp: TopicPartition) -> Committed:
        """Commit from the lowest offset on, in as many calls as it takes; at the cap as much as still fits.

        What nobody can have read stays collected, and is refused once all below it is committed.
        """
        left, most, answers = union(self._done[tp]), RANGES_MAX, list[Committed]()
        beyond, refused = tuple[OffsetRange, ...](), None
        while left:
            self._done[tp], now = [*left, *beyond], left[:most]
            try:
                answers.append(self._commits.commit(tp, now))
            except CommitBeyondReadError as error:
                if refused:
                    raise
                (left, beyond), refused = parted(left, error.reach), error
                continue
            except MaxIndividualCommitReachedError:
                if len(now) == 1:
                    raise
                most = len(now) // 2
                continue
            except IndividualCommitTooOldError:  # it counts already
                if now == left and not answers and not refused:
                    del self._done[tp]
                    raise
            left = left[most:]
        if refused:
            self._done[tp] = list(beyond)
            raise refused
        del self._done[tp]
        return _in_one(answers)


def _in_one(answers: Sequence[Committed]) -> Committed:
    """The answer to several commits of one partition, one after the other."""
    refused = sorted({hashes for answer in answers for hashes in answer.refused})
    return replace(answers[-1], duplicates=sum(a.duplicates for a in answers), refused=tuple(refused))
