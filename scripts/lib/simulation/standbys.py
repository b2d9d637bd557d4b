"""Schedules with standbys: some drivers want to be one, or an operator drains them. Checks who works after each look.

rule: standby-takes-over; rule: drain-hands-over.
"""

from collections import Counter
from collections.abc import Mapping
from random import Random

from coordinator.redis.group_state import STANDBY, WORKING
from simulation.sink import Violation
from simulation.state import Members

Roles = Mapping[str, str]


class Standbys:
    """The drivers that want to be standbys. It draws by itself, so that schedules without standbys stay as they are."""

    def __init__(self, seed: int, seen: Counter[str], *, possible: bool) -> None:
        self._random = Random(f"standbys {seed}")  # noqa: S311 - it must replay
        self._seen = seen
        self._part = self._random.choice((0.3, 0.6, 1.0)) if possible and self._random.random() < 0.25 else 0.0
        drains = Random(f"drains {seed}")  # noqa: S311 - other schedules stay as they were
        self.drains = possible and drains.random() < 0.2  # whether an operator drains members
        self._before: Roles = {}
        self._roles: Roles = {}

    def __bool__(self) -> bool:
        """Whether drivers of this schedule may be standbys."""
        return bool(self._part)

    def drawn(self, *, ends_by_itself: bool) -> bool:
        """Whether a driver that starts wants to be a standby."""
        return bool(self._part) and self._random.random() < self._part and not ends_by_itself

    def role(self, member: str) -> str:
        """The role of a member in Redis; empty of one that never is a standby."""
        return self._roles.get(member, "")

    def watch(self, roles: Roles) -> None:
        """Note the roles after a script."""
        self._before, self._roles = self._roles, roles

    def looked(self, members: Members, assigned: int, now_ms: int, *, alone: bool) -> None:
        """Raise `Violation` if too few members work after a look while a standby is there, or if too many took over.

        `assigned`: so many members are in the assignment. `alone`: one may be enough (rule: one-application).
        """
        if not (self or self.drains):
            return
        roles, before = self._roles, self._before
        there = _there(members, now_ms)
        working = {member for member in there if roles.get(member) != STANDBY}
        wanted = max(1, assigned)
        if len(working) < (1 if alone else wanted) and working != there:
            raise Violation(f"STANDBY: {sorted(working)} work, the assignment has {wanted} members, roles {roles}")
        took_over = {m for m in working if roles.get(m) == WORKING and before.get(m) == STANDBY}
        self._seen["took over"] += bool(took_over)
        if took_over and len(working) > wanted:
            raise Violation(f"STANDBY: {sorted(took_over)} took over, {sorted(working)} work, {wanted} are wanted")


def _there(members: Members, now_ms: int) -> set[str]:
    """The members with a lease, without a hung batch, that do not leave."""
    staying = {*members.alive(now_ms)} - {*members.leaving}
    return {member for member in staying if members.hung.get(member, now_ms) >= now_ms}
