"""The role of a standby, as of its last look (rule: standby-takes-over; rule: drain-hands-over). Pure.

    standby  --> working   a member was lost, and Redis has chosen this one in its place
    working  --> standby   this one was lost for a while, and another standby has its place
    no role  --> standby   an operator has drained this member
    standby  --> no role   this member was drained, and has joined again

A member has no role if it does not want to be a standby, and no operator has drained it.
"""

from dataclasses import replace

from coordinator.assignment.settings import GroupSettings
from coordinator.member.kinds import Request
from coordinator.member.requests import LogLine
from coordinator.member.state import State
from coordinator.redis.group_state import STANDBY, WORKING

_LINES = {
    STANDBY: "group {}: member {} is a standby: it reads nothing, and takes over when a working member is lost",
    WORKING: "group {}: member {} works from now on: too few other members do",
}


def with_role(state: State, role: str, settings: GroupSettings) -> tuple[State, tuple[Request[bool], ...]]:
    """The state with this role, and a line for the driver's log if it is another one."""
    drained_no_more = not role and not settings.standby
    if role == state.life.role or not (role in _LINES or drained_no_more):
        return state, ()
    lines = (LogLine(_LINES[role].format(settings.group, state.life.member)),) if role in _LINES else ()
    return replace(state, life=replace(state.life, role=role)), lines
