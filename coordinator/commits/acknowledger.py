"""Collects offsets that are done, and commits them once there are many ranges."""

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

from coordinator.commits.commit_api import RANGES_MAX, CommitApi, Committed
from coordinator.errors import CommitBeyondReadError, IndividualCommitTooOldError, MaxIndividualCommitReachedError
from coordinator.values.ranges import OffsetRange, parted, union
from coordinator.values.subscription import TopicPartition


class Acknowledger:
    """Acknowledge records one by one, then `flush`. Safe for several threads: one commits, the others wait.

    It commits a partition by itself once it has collected more than `max_ranges` ranges of it.
    """

    def __init__(self, commits: CommitApi, max_ranges: int = 10_000) -> None:
        self._commits, self._max_ranges = commits, max_ranges
        self._done: dict[TopicPartition, list[OffsetRange]] = {}
        self._lock = Lock()  # of the collected ranges: a commit replaces them

    def done(self, tp: TopicPartition, offsets: OffsetRange) -> Committed | None:
        """Acknowledge offsets. Returns the answer if this call commits. Raises the errors of `commit`."""
        with self._lock:
            collected = self._done.setdefault(tp, [])
            if collected and collected[-1].until == offsets.start:
                collected[-1] = OffsetRange(collected[-1].start, offsets.until)
            else:
                collected.append(offsets)
            return self._flush(tp) if len(collected) > self._max_ranges else None

    def flush(self) -> dict[TopicPartition, Committed]:
        """Commit all collected ranges; those that Redis refuses stay collected. Raises the errors of `commit`."""
        with self._lock:
            return {tp: self._flush(tp) for tp in list(self._done)}

    def _flush(self, tp: TopicPartition) -> Committed:
        """Commit from the lowest offset on, in several calls if needed; at the cap, as many ranges as still fit.

        Offsets that the member cannot have read stay collected. The error comes after all lower ones are committed.
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
            except IndividualCommitTooOldError:  # all of it was committed before
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
    """One answer for several commits of one partition, in their order."""
    refused = sorted({hashes for answer in answers for hashes in answer.refused})
    return replace(answers[-1], duplicates=sum(a.duplicates for a in answers), refused=tuple(refused))
