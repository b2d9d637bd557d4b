"""How many slots a group needs, for autoscalers: for the records that arrive, and for the unread ones in time. Pure.

    arrive     500 records/s of 4 ms                    2 slots
    unread     300,000 records of 4 ms within 10 min    2 slots more

Members report both (`lane_report`), as far as they know what records cost.
"""

from math import ceil

from coordinator.redis.group_state import BACKLOG_MS, LOAD_PERCENT, GroupState
from coordinator.tools.operations.views import live

DRAIN_S = 600
"""The time to read the backlog in, by default."""


def wanted_slots(state: GroupState, lag: int | None, drain_s: int) -> int:
    """The number; at least one while records are unread, or may be: `lag` is None where it is unknown.

    Without members that report, nothing shows what records cost. A report is of the last plan: all may be read since.
    """
    members = [state.members.get(member, {}) for member in live(state)]
    arriving = sum(int(of.get(LOAD_PERCENT, "0")) for of in members) / 100
    unread = sum(int(of.get(BACKLOG_MS, "0")) for of in members if lag != 0) / 1_000 / drain_s
    return max(int(lag != 0), ceil(round(arriving + unread, 6)))
