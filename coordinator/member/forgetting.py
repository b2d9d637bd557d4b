"""Topics that no member subscribes to are forgotten after `offsets.retention.minutes` (rule: topic-expiry). Pure.

Redis decides. A member asks only while the group has topics that it does not read itself.
"""

from dataclasses import replace

from coordinator.member.decision import Call, Decision, Seen
from coordinator.member.requests import DeleteMirror, ForgetTopics
from coordinator.member.state import State

ASK_MS = 10_000
"""A fraction of the shortest retention, which is a minute."""


def forget_topics(state: State, seen: Seen, call: Call) -> Decision:
    """Ask Redis to forget topics without subscribers; then delete them from the mirror, which would bring them back."""
    owning, now_ms = state.owning, seen.now_ms
    others = owning.acquired.topic_ids.keys() - state.log.topics.keys()
    if not others or (owning.forgot_ms is not None and now_ms - owning.forgot_ms < ASK_MS):
        return Decision(state)
    forgotten = seen.of(ForgetTopics(tuple(sorted(others))))
    if forgotten and state.mirrored.allowed:
        seen.of(DeleteMirror(forgotten))
    return Decision(replace(state, owning=replace(owning, forgot_ms=now_ms)))
