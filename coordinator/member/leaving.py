"""The last steps of a member: they free every range without an unconfirmed slice. Pure.

Each request is made once. Where Redis does not answer, the end of the lease frees the ranges
(rule: leave-keeps-unconfirmed).
"""

from dataclasses import replace
from typing import Any

from coordinator.member.decision import Call, Decision, Return, Seen
from coordinator.member.kinds import Request
from coordinator.member.mirroring import mirror_request
from coordinator.member.owning import left, notified
from coordinator.member.requests import LastCommit, Leave, LogLine
from coordinator.member.state import NOT_ACQUIRED, State
from coordinator.redis.replies import Leaving


def commit_again(state: State, seen: Seen, call: Call) -> Decision:
    """Spark stops a query at any moment, also in a commit: then the batch in the sink is committed once more."""
    under_way = state.commits.under_way
    if not (under_way and state.life.nonce and seen.done(LastCommit(**under_way.request.arguments))):
        return Decision(state)
    commits = replace(state.commits, under_way=None)
    return Decision(replace(state, evidence=state.evidence.confirmed(), commits=commits))


def warn_of_parked(state: State, seen: Seen, call: Call) -> Decision:
    """Warn that a run ends without the records of parked keys and lanes."""
    keys = [(r.tp, r.offset) for r in state.failing.records if r.parked]
    lanes = [(s.tp, s.offset) for s in state.strikes.strikes if s.parked]
    kinds = ("keys", "one of ", keys), ("lanes", "", lanes)
    group = call.setup.settings.group
    return Decision(
        state,
        tuple(
            LogLine(
                f"group {group}: parked {what} stay unread: {len(parked)}, of them {of}{parked[0][0]} at offset "
                f"{parked[0][1]}; `coop-kafka stuck {group}` shows them, `coop-kafka release` lets them be read"
            )
            for what, of, parked in kinds
            if parked
        ),
    )


def free(state: State, seen: Seen, call: Call, *, how: Leaving) -> Decision:
    """Leave the group, tell the user's listener, and update the mirror. `how`: how long others wait for the rest."""
    unconfirmed, owned = state.evidence.unconfirmed_ranges, state.owning.acquired.ownership
    ranges = {tp: unconfirmed.get(tp, ()) for tp in {*state.log.partitions, *unconfirmed}}
    gone = replace(state, owning=replace(state.owning, acquired=NOT_ACQUIRED, ranges={}, as_of=None))
    if not (state.life.nonce and seen.done(Leave(ranges, how))):
        return Decision(gone, notified(owned, {}), Return(None))
    mirror, notices = mirror_request(state), tuple[Request[Any], ...](left(owned, unconfirmed))
    gone = replace(gone, life=state.life.rejoining())
    return Decision(gone, (*notices, mirror) if mirror else notices, Return(None))
