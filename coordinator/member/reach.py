"""How far what is owned may be read in the next batch: five reasons to stop before the end of the log.

    back_pressure  the partition holds all the individual commits it may
    gates          a new partition waits for older ones
    quarantine     a record may be poison
    lead           lanes keep within a span of record time
    steering       the time budget

Each gives pieces a ceiling; none moves a position. Part of the service, on its thread.
"""

from collections.abc import Mapping

from coordinator.assignment.assignment_text import Ranges
from coordinator.assignment.rebalance import difference, owned_ranges
from coordinator.clock import Clock
from coordinator.cost.quotas import Budget
from coordinator.member.gates import Gates
from coordinator.member.holding import Holding
from coordinator.member.lead import Lead
from coordinator.member.log_view import LogView
from coordinator.member.membership import Membership
from coordinator.member.quarantine import Quarantine
from coordinator.member.steering import Steering
from coordinator.plan.back_pressure import held_back
from coordinator.plan.planning import Cutting, OwnedRanges, with_positions
from coordinator.plan.poison import struck_ranges
from coordinator.ports import Log
from coordinator.redis.store import Acquired, RedisStore
from coordinator.reports.lane_lines import LEAD, OLDER, ROOM
from coordinator.reports.lane_report import Planned
from coordinator.settings import GroupSettings
from coordinator.subscription import Bounds, TopicPartition


class Reach:
    """The five reasons, and their parts; see the module."""

    def __init__(
        self,
        settings: GroupSettings,
        cutting: Cutting,
        store: RedisStore,
        membership: Membership,
        view: LogView,
        log: Log,
        clock: Clock,
    ) -> None:
        self._most_ics = settings.max_individual_commits
        self.gates = Gates(settings.group, store, membership, view)
        self.quarantine = Quarantine(store, membership, clock)
        self._lead = Lead(log, settings.max_lead_ms)
        self.budget = Budget(settings.batch_budget_ms, cutting.slots)
        self.steering = Steering(clock, cutting, self.budget, concurrency=settings.concurrency)
        self._owned: Ranges = {}
        self._struck: Ranges = {}
        self._seen: object = None
        self._work: OwnedRanges = {}
        self._ceilings: tuple[tuple[str, OwnedRanges], ...] = ()

    def limit(
        self,
        acquired: Acquired,
        bounds: Mapping[TopicPartition, Bounds],
        ends: Mapping[TopicPartition, int],
        holding: Holding,
        *,
        everything: bool,
    ) -> OwnedRanges:
        """The work on what was acquired, each piece up to its ceiling; `ends` is where the run ends.

        With `everything` the time budget is no ceiling.
        """
        seen = (acquired, bounds, ends, self.quarantine.strikes)
        if self._seen == seen and not holding.growths and not seen[-1]:
            return self._work  # an idle query asks four times a second
        self._seen = seen
        work = with_positions(acquired.ownership, acquired.progress)
        less = held_back(work, acquired.whole, self._most_ics)
        if less != work:
            holding.forget()  # a commit elsewhere may make room: look again each time
            self._seen = None
        gated = self.gates.limit(less, bounds, holding.growths, reset=acquired.reset, now_ms=holding.looked_at_ms)
        if holding.taken:
            self.quarantine.blame()  # what is ours now may have been another's who was lost over it
        tried, alone = self.quarantine.limit(gated, ends, self.steering.offsets_of_a_record)
        self._start_small(acquired)
        led = self._lead.limit(tried, ends)
        self._ceilings = (ROOM, less), (OLDER, gated), (LEAD, led)
        self._work = self.steering.bounded(led, ends, alone, everything=everything)
        return self._work

    def _start_small(self, acquired: Acquired) -> None:
        """What was not ours at the last look, or was struck then, may cost something else by now: begin as if new."""
        owned, struck = owned_ranges(acquired.ownership), struck_ranges(self.quarantine.strikes)
        for back in (difference(owned, self._owned), difference(self._struck, struck)):
            self.steering.start_small(back)
        self._owned, self._struck = owned, struck

    def planned(self, until: Mapping[TopicPartition, int]) -> Planned:
        """What was decided last, to be told; `until` is how far partitions are read after Spark's limits."""
        bounds = self.steering.cutting.bounds or ()
        strikes, alone = self.quarantine.strikes, self.quarantine.alone
        return Planned(self.steering.quotas, until, strikes, bounds, alone, self._ceilings)
