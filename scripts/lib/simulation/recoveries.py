"""How long a recovery waits for members that are not heard (rule: recovering-session).

loss   recover                                   the longest session is over
|------|-----------------------------------------|----------->
         members of before assert and join again   members plan
         all of them are heard: then at once -->
"""

from collections import Counter
from collections.abc import Mapping
from random import Random

from simulation.sink import Violation

_NEEDS_OWNERSHIP = ("look", "acquire", "authorize", "commit", "hand_out")


class Recoveries:
    """The recovery that made the nonce in force, and the session of each member at its last join."""

    def __init__(self, seen: Counter[str]) -> None:
        self._seen = seen
        self._sessions: dict[str, int] = {}
        self._nonce: str | None = None
        self._since_ms, self._longest_ms, self._excuses = 0, 0, 0
        self._unheard: set[str] = set()
        self._all_may_be_heard = False  # Redis knew members; else it waits in any case

    @property
    def _unknown(self) -> int:
        """Events that may end a recovery, of which no member knows: Redis may hear a join that its caller gave up."""
        return self._seen["clock_jump"] + self._seen["late join"]

    def recovered(
        self, nonce: str | None, session_ms: int, now_ms: int, leases: Mapping[str, float], *, anew: bool
    ) -> None:
        """A member with this session has recovered the group; `leases` of before; `anew`: Redis knew no member."""
        self._nonce, self._since_ms, self._excuses = nonce, now_ms, self._unknown
        since_ms = max([now_ms, *(its_end - session_ms for its_end in leases.values())])  # the clock may be set back
        self._unheard = {
            member for member, its_end in leases.items() if its_end > since_ms and member in self._sessions
        }
        self._all_may_be_heard = not anew
        self._longest_ms = max([session_ms, *(self._sessions[m] for m in self._unheard)])
        self._seen["recovered beside others"] += bool(self._unheard)

    def ran(self, verb: str, nonce: str | None, member: str, session_ms: int, now_ms: int) -> None:
        """A member's script has succeeded; raises `Violation` if the recovery should still refuse it."""
        if verb == "join":
            self._sessions[member] = session_ms
        if nonce != self._nonce or self._nonce is None or self._unknown != self._excuses:
            return
        left_ms = self._since_ms + self._longest_ms - now_ms
        if verb == "join" and left_ms > 0:
            self._unheard.discard(member)
            if not self._all_may_be_heard:
                self._longest_ms = max(self._longest_ms, session_ms)
        waits = self._unheard or not self._all_may_be_heard
        if verb in _NEEDS_OWNERSHIP and waits and left_ms > 0:
            who = ", ".join(sorted(self._unheard)) or "nobody of before is known"
            raise Violation(f"RECOVERY: {verb} of {member} {left_ms} ms before its end; not heard: {who}")
        self._seen["a recovery waited"] += bool(verb == "look" and waits and left_ms <= 0)


def session_lengths(seed: int, shortest_ms: int, *, differ: bool) -> tuple[int, ...]:
    """The session lengths of the members of a schedule."""
    random = Random(f"{seed} sessions")  # noqa: S311 - other schedules stay as they were
    return (shortest_ms, 2 * shortest_ms, 3 * shortest_ms) if differ and random.random() < 0.2 else (shortest_ms,)
