"""The errors of an operator whose call a script refuses, and the operator's name in events."""

import getpass
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from coordinator.errors import CoopKafkaError, GroupBusyError, StateLostError, UnknownGroupError
from coordinator.values import verdicts


def operator() -> str:
    """`user@host` of this process, for an event. A user without a name, as in containers, is `uid-<number>`."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"uid-{os.getuid()}"
    return f"{user}@{socket.gethostname()}"


@contextmanager
def refused(group: str) -> Iterator[None]:
    """Raise an operator's error if a script refuses a call in the body."""
    try:
        yield
    except verdicts.Verdict as verdict:
        raise refusal(group, verdict) from None


def refusal(group: str, verdict: verdicts.Verdict) -> CoopKafkaError:
    """The operator's error for a verdict of a script."""
    match verdict:
        case verdicts.Busy(member=member, lease_end_ms=end, now_ms=now):
            return GroupBusyError(
                f"group {group!r} has an active member, {member}: its lease lasts {(end - now) / 1e3:.1f} s, or longer",
                "stop all queries of the group (coop-kafka describe shows host and pid); after a kill, wait for the "
                "end of the lease",
            )
        case verdicts.Superseded():
            return GroupBusyError(
                f"another operator has just reset group {group!r}, or a query has worked in it",
                "look at the group with coop-kafka describe, and run the command again if you still want to",
            )
        case verdicts.Recovering():
            return GroupBusyError(
                f"group {group!r} is recovering from a loss of state",
                "wait a minute, or reset all topics of the group at once",
            )
        case verdicts.Absent():
            return UnknownGroupError(f"Redis has no group {group!r}")
        case _:
            return StateLostError(
                f"Redis may have lost progress of group {group!r} ({verdict})",
                "start a query of the group, which recovers it; or reset all topics of the group at once",
            )
