"""The role of a member that wants to be a standby, as of its last look (rule: standby-takes-over). Pure.

    standby  --> working   a member was lost, and Redis has chosen this one in its place
    working  --> standby   this one was lost for a while, and another standby has its place

A member that does not want to be a standby has no role.
"""

from dataclasses import replace

from coordinator.group_state import STANDBY, WORKING
from coordinator.member.kinds import Request
from coordinator.member.requests import Log
from coordinator.member.state import State
from coordinator.settings import GroupSettings

_LINES = {
    STANDBY: "group {}: member {} is a standby: it reads nothing, and takes over when a working member is lost",
    WORKING: "group {}: member {} works from now on: too few other members do",
}


def with_role(state: State, role: str, settings: GroupSettings) -> tuple[State, tuple[Request[bool], ...]]:
    """The state with this role, and a line for the driver's log if it is another one."""
    if role == state.life.role or role not in _LINES:
        return state, ()
    line = _LINES[role].format(settings.group, state.life.member)
    return replace(state, life=replace(state.life, role=role)), (Log(line),)
