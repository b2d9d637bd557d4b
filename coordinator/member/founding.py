"""One founding: a member never works in another group of the same name (rule: one-founding). Pure.

REPLACED   Redis holds another group than this member knows: the query ends     `replaced`
mirror     names the founding that its offsets are of                           `of_proofs`
           of another topic id, and no group in Redis: copied, or of before     `copied`
no right   to read the mirror: nobody knows whether it proves a group           `unreadable`
"""

from dataclasses import replace

from coordinator.errors import KafkaAccessError, StateLostError
from coordinator.member.decision import Call, Decision, Fail, Seen
from coordinator.member.state import State
from coordinator.progress.mirror import GroupOffsets, foundings
from coordinator.values.verdicts import Absent, Lost, Replaced


def replaced(state: State, seen: Seen, call: Call) -> Decision:
    """Redis holds another group of this name: end the query."""
    verdict = state.life.verdict
    if not isinstance(verdict, Replaced):
        return Decision(state)
    error = another(call.setup.settings.group, state.life.founding, f"Redis holds {verdict}")
    return Decision(replace(state, life=replace(state.life, verdict=None)), (), Fail(error))


def of_proofs(state: State, verdict: Lost, offsets: GroupOffsets, group: str) -> str:
    """The founding of the group to recover; empty if nothing names it. `offsets` are the mirror, of topics that exist.

    If Redis has a `meta`, its founding decides, and the script compares. Without it, a mirror of another group shows
    that this one was replaced.
    """
    mine, mirrored = state.life.founding, set(foundings(offsets).values())
    others = mirrored - {mine} if isinstance(verdict, Absent) or not mine else set()
    if others and (mine or len(others) > 1):
        raise another(group, mine or "not known", f"Kafka's group of that name holds {', '.join(sorted(others))}")
    return mine or "".join(others)


def another(group: str, mine: str, there: str) -> StateLostError:
    """The error of a query whose group was replaced."""
    return StateLostError(
        f"group {group!r} is not the one that this query read: its founding is {mine}, and {there}. The earlier group "
        "was deleted, or Redis lost it and nothing proved it, and then another query created it anew",
        "to continue in the group of now, start this query with a new checkpointLocation and an output of its own; to "
        "continue from its checkpoint instead, stop all queries of the group, run coop-kafka delete, then start this "
        "one first",
    )


def copied(group: str, topic: str, there: str, here: str) -> StateLostError:
    """The error of a query that would create a group beside offsets of coop-kafka, of a topic with another id."""
    return StateLostError(
        f"Redis holds no group {group!r}, and Kafka's group of that name has offsets that coop-kafka wrote, of another "
        f"topic {topic!r} (topic id {there}, here {here}): they were copied from another cluster, or the topic was "
        "created again since",
        f"to begin at copied offsets, run coop-kafka import {group} --from kafka-group:{group} --execute, then start "
        "this query; if the topic was created again, run coop-kafka delete first: the offsets are not of its records",
    )


def unreadable(group: str) -> KafkaAccessError:
    """The error of a query that would create or recover a group, and may not read the mirror."""
    return KafkaAccessError(
        f"Redis holds no group {group!r}, and this Kafka user may not read Kafka's group of that name, which may have "
        "the positions of one",
        f"grant READ on the group {group!r} to the user of the query, then start it again",
    )
