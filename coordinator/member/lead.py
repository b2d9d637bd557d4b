"""Keeps lanes within `max.lane.lead` of one another, by the times of records in Kafka. On the service's thread.

Asks Kafka nothing unless the option is given and something is to be read.
"""

from collections.abc import Mapping

from coordinator.offset_spec import AtTimestamps, NoMatch
from coordinator.plan.event_time_lead import unread, within_lead
from coordinator.plan.planning import OwnedRanges
from coordinator.ports import Log
from coordinator.subscription import TopicPartition


class Lead:
    """What it asked last; see the module."""

    def __init__(self, log: Log, most_ms: int | None) -> None:
        self._log, self._most_ms = log, most_ms
        self._times: dict[tuple[TopicPartition, int], int | None] = {}

    def limit(self, work: OwnedRanges, ends: Mapping[TopicPartition, int]) -> OwnedRanges:
        """`work` with no lane more than the lead ahead of the one whose next record is oldest."""
        if self._most_ms is None:
            return work
        stretches = unread(work, ends)
        wanted = {(tp, stretch.start) for tp, stretch in stretches.items()}
        self._times = {at: time for at, time in self._times.items() if at in wanted}
        missing = {tp: stretch for tp, stretch in stretches.items() if (tp, stretch.start) not in self._times}
        if missing:
            found = self._log.first_times(missing)
            self._times |= {(tp, stretch.start): found.get(tp) for tp, stretch in missing.items()}
        times = {tp: time for (tp, _), time in self._times.items() if time is not None}
        if not times:
            return work
        first = min(times.values())
        too_late = AtTimestamps(dict.fromkeys(stretches, first + self._most_ms + 1), NoMatch.LATEST)
        oldest = {tp: stretches[tp] for tp, time in times.items() if time == first}
        return within_lead(work, self._log.resolve(too_late, stretches), oldest)
