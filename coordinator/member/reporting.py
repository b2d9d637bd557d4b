"""When a member tells what its lanes do: once a second at most, and only what is news (spec 8).

Part of the service, on its thread. A Redis that does not answer is not waited for: the next plan tells it again.
"""

import logging
from collections.abc import Sequence

from coordinator.assignment.spare import SLOW_PERCENT
from coordinator.clock import Clock
from coordinator.cost.quotas import Budget, Quota
from coordinator.errors import CoopKafkaError
from coordinator.member.membership import Membership
from coordinator.redis.store import RedisStore
from coordinator.reports.end_history import EndHistory
from coordinator.reports.lane_lines import LaneLine, LanesTold
from coordinator.reports.lane_report import Ended, Planned, batch_line, lanes_told, slow_part

EVERY_MS = 1_000

_log = logging.getLogger(__name__)


class Reporting:
    """What one member has told, and what it will tell next."""

    def __init__(
        self, store: RedisStore, membership: Membership, clock: Clock, budget: Budget, history: EndHistory
    ) -> None:
        self._store, self._membership, self._clock = store, membership, clock
        self._budget, self._history = budget, history
        self._ended: Ended | None = None
        self._looked_at: int | None = None
        self._slow_percent = 0
        self._quotas: Sequence[Quota] = ()
        self._told: tuple[object, ...] = ()
        self.lanes = LanesTold()
        """The lanes as of a second ago."""

    @property
    def fields(self) -> dict[str, str]:
        """What a member says of its lanes when it joins again."""
        return {SLOW_PERCENT: str(self._slow_percent)} if self._slow_percent else {}

    def planned(self, planned: Planned) -> None:
        """Lanes have been planned, or there was nothing to plan."""
        now = self._clock.now_ms()
        if self._looked_at is None or now - self._looked_at >= EVERY_MS:
            self._looked_at = now
            as_before = planned.quotas is self._quotas and self._told[2:] == (self._membership.joined,)
            if as_before and not any(line.lag for line in self.lanes.lines):
                return  # an idle query, which may have very many lanes
            self._quotas = planned.quotas
            self.lanes = lanes_told(planned, self._ended, self._history, now)
            self._slow_percent = round(100 * slow_part(planned.quotas, self._budget))
            self._tell(self.lanes.lines, self._slow_percent)

    def _tell(self, lanes: tuple[LaneLine, ...], slow_percent: int) -> None:
        news = (lanes, slow_percent, self._membership.joined)  # after a loss of state all is news
        if news != self._told and self._membership.beat(lambda c: self._store.report(c, lanes, slow_percent)):
            self._told = news

    def ended(self, ended: Ended | None) -> None:
        """The sink has completed a batch, if one was under way."""
        if ended is None:
            return
        self._ended = ended
        try:
            self._store.tell_batch(batch_line(self._membership.member, ended))
        except CoopKafkaError as error:
            _log.warning("%s could not tell of a batch: %s", self._membership.member, error)
