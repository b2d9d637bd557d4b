"""Commits the stable offsets to Kafka's own group: 10 s apart if they move, else 30 s apart. Pure.

Kafka forgets an offset that was not committed for its own `offsets.retention.minutes`, which is at least one minute. So
the member commits unchanged offsets again (rule: mirror-refresh).
"""

from dataclasses import replace

from coordinator.assignment.policies import Policy
from coordinator.member.decision import Call, Decision, Seen
from coordinator.member.kinds import Request
from coordinator.member.requests import Mirror
from coordinator.member.state import State

MIRROR_MS = 10_000
REFRESH_MS = 30_000
"""Half of the shortest retention that Kafka permits: so no broker's setting needs to be known."""


def mirror_if_due(state: State, seen: Seen, call: Call) -> Decision:
    """Update the mirror if positions have moved and it is 10 s old; refresh it if it is 30 s old."""
    m = state.mirrored
    if m.at_ms is None and not m.behind:  # the start of a life costs no call, and its first move is mirrored at once
        return Decision(replace(state, mirrored=replace(m, at_ms=seen.now_ms - MIRROR_MS)))
    if m.at_ms is not None and seen.now_ms - m.at_ms < (MIRROR_MS if m.behind else REFRESH_MS):
        return Decision(state)
    mirrored = mirror(state, seen)
    return Decision(replace(mirrored, mirrored=replace(mirrored.mirrored, at_ms=seen.now_ms)))


def mirror(state: State, seen: Seen) -> State:
    """Update the mirror now, unless plain consumers live in Kafka's own group. A failure leaves it behind."""
    request = mirror_request(state)
    allowed = seen.done(request) if request else None
    return state if allowed is None else replace(state, mirrored=replace(state.mirrored, allowed=allowed, behind=False))


def mirror_policy(state: State, seen: Seen, policy: Policy) -> State:
    """Update the mirror at once if the group's policies are others than in it (rule: policies-survive).

    A failure is tried again at the next look.
    """
    policy = policy.of_group
    if policy == state.mirrored.policy:
        return state
    request = mirror_request(state)
    allowed = seen.done(request) if request else False
    if allowed is None:
        return state
    return replace(state, mirrored=replace(state.mirrored, allowed=allowed, policy=policy))


def mirror_request(state: State) -> Request[bool | None] | None:
    """The request of an update; None where plain consumers live in Kafka's own group."""
    request = Mirror(state.log.partitions, tuple(state.log.topics), state.life.founding)
    return request if state.mirrored.allowed else None
