"""Seals the ends of a batch, on the thread of the task that ended last (rule: seal-before-sink). Pure."""

from coordinator.errors import FencedMemberError
from coordinator.member.decision import Call, Decision, Return, Seen
from coordinator.member.kinds import Request
from coordinator.member.state import State
from coordinator.values.verdicts import Fenced


def seal(state: State, seen: Seen, call: Call, *, request: Request[bool]) -> Decision:
    """Seal the ends. After a loss of state its lane epochs are void: then only this process asserts the ends."""
    life, fenced = state.life, isinstance(state.life.verdict, Fenced)
    if not fenced and (life.verdict or not life.nonce or seen.done(request)):
        return Decision(state, (), Return(None))
    raise FencedMemberError(
        f"another driver with the same checkpoint has taken over member {life.member} of group "
        f"{call.setup.settings.group!r} while a batch was read",
        "give each query a checkpoint of its own; this one has lost nothing and can be stopped",
    )
