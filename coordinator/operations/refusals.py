"""What an operator is told when a script refuses, and how an event names him."""

import getpass
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from coordinator import verdicts
from coordinator.errors import CoopKafkaError, GroupBusyError, StateLostError, UnknownGroupError


def operator() -> str:
    """Who does it, for an event; a user id without a name, as in containers, is its number."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = f"uid-{os.getuid()}"
    return f"{user}@{socket.gethostname()}"


@contextmanager
def refused(group: str) -> Iterator[None]:
    """Raise an error of ours where a script refuses what is done within."""
    try:
        yield
    except verdicts.Verdict as verdict:
        raise refusal(group, verdict) from None


def refusal(group: str, verdict: verdicts.Verdict) -> CoopKafkaError:
    """The error of ours that says why a script refused what an operator wanted."""
    match verdict:
        case verdicts.Busy(member=member, lease_end_ms=end, now_ms=now):
            lease = f"its lease runs for {(end - now) / 1e3:.1f} s more"
            return GroupBusyError(
                f"group {group!r} has live members, {member} among them ({lease})",
                "stop all queries of the group, and wait for the leases of those that were killed",
            )
        case verdicts.Superseded():
            return GroupBusyError(
                f"group {group!r} was reset by somebody else just now",
                "look at it (coop-kafka describe), and reset it again if it is not as you wish",
            )
        case verdicts.Recovering():
            return GroupBusyError(
                f"group {group!r} is recovering from a loss of state",
                "wait for a minute; or reset all of its topics at once",
            )
        case verdicts.Absent():
            return UnknownGroupError(f"Redis knows no group {group!r}", "coop-kafka groups list shows them")
        case _:
            return StateLostError(
                f"Redis may be behind what the members of group {group!r} had done ({verdict})",
                "start a query of the group, which recovers it; or reset all of its topics at once",
            )
