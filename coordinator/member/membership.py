"""One life of one member: it joins, keeps its lease, and brings every store call through outages and losses.

    call(verb) --OK-------------------------------------------> value
               --REJOIN-----> join, again                       (state was recovered by somebody)
               --LOST-------> recover with what proves positions, join, again
               --RECOVERING-> assert once, wait, again
               --BUSY-------> wait for the other's lease; GroupBusyError if it is renewed, or of our own query
               --FENCED-----> FencedMemberError                 (another life has joined)
               --no answer--> again, until redis.max.outage

Runs in the stream reader's process; `call` on its main thread, `beat` on the heartbeat thread. A lock guards what both
change: the lease end, what Redis said last, and since when it is away.
"""

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import count
from typing import TypeVar

from coordinator import verdicts
from coordinator.assignment.assignment_text import Ranges
from coordinator.clock import Clock
from coordinator.errors import CoopKafkaError, FencedMemberError, RedisUnavailableError, StateFormatError
from coordinator.member.busy import same_query, two_queries, two_reads
from coordinator.ranges import HashRange
from coordinator.redis.calls import Answer, Caller, Seen
from coordinator.redis.membership import Joining
from coordinator.redis.store import RedisStore
from coordinator.settings import GroupSettings
from coordinator.subscription import TopicPartition

T = TypeVar("T")
_log = logging.getLogger(__name__)
RETRY_MS = 200
SAY_AGAIN_MS = 20_000
FIRST_CONTACT_MS = 5_000  # an address that never answered is more likely wrong than away


class Membership:
    """Holds who this process is in the group, and until when its lease is acknowledged.

    `recover` and `assert_positions` are the owner's answers to a loss of state: the first writes
    what is proven, the second asserts what this process knows.
    """

    def __init__(
        self,
        store: RedisStore,
        clock: Clock,
        settings: GroupSettings,
        joining: Callable[[], Joining],
        *,
        recover: Callable[[Caller, str], None],
        assert_positions: Callable[[], None],
    ) -> None:
        self._store, self._clock, self._settings, self._joining = store, clock, settings, joining
        self._recover, self._assert_positions = recover, assert_positions
        self._member = ""
        self._incarnation = settings.tokens(8)
        self._lock = threading.Lock()
        self._numbers = count(1)  # of calls: one that arrives after a later one changes nothing
        self._seen: Seen | None = None
        self._joined = ""  # the nonce at which this life has joined
        self._joined_before = ""  # the same, kept when it must join again
        self._asserted = ""  # the nonce at which it has asserted
        self._lease_end = 0  # of this host's clock
        self._reached = False  # whether Redis has ever answered
        self.targets: Mapping[TopicPartition, int] = {}  # of AvailableNow, raised to those of the other members
        self._away: tuple[int, int] | None = None  # since when heartbeats find no Redis, and when that was said
        self._other: tuple[str, int] | None = None  # a member in the way, and its lease end

    @property
    def member(self) -> str:
        """The member id; empty until `identify`."""
        return self._member

    @property
    def joined(self) -> str:
        """The nonce at which this life has joined; changes whenever ownership may have."""
        return self._joined

    @property
    def lease_left_ms(self) -> int:
        """How long the last acknowledged lease still runs, by this host's clock."""
        return self._lease_end - self._clock.now_ms()

    @property
    def caller(self) -> Caller:
        """This life as the store's scripts see it."""
        with self._lock:
            nonce = self._joined  # once: the main thread may forget it meanwhile
            seq = str(self._seen.seq) if self._seen and self._seen.nonce == nonce else "0"
            return Caller(self._member, self._incarnation, nonce, seq)

    def identify(self, member: str | None) -> None:
        """Take the identity that the checkpoint names, or mint one: same checkpoint, same member (spec 4.2)."""
        if not self._member:
            self._member = member or f"m-{self._settings.tokens(4)}"

    def call(self, verb: Callable[[Caller], Answer[T]]) -> T:
        """The value of a verb run as this member; see the module's table."""

        def as_member() -> T:
            if not self._joined:
                self._join()
            return self._renewing(verb, replace(self.caller, number=str(next(self._numbers))))

        return self._persist(as_member)

    def outside(self, verb: Callable[[], T]) -> T:
        """The value of a verb that needs no membership, through outages and losses all the same."""
        return self._persist(verb)

    def _persist(self, step: Callable[[], T]) -> T:
        verdict, since = None, self._clock.now_ms()
        while True:
            try:
                if verdict is not None:
                    self._handle(verdict)
                    verdict = None
                value = step()
                self._reached = True
                return value
            except RedisUnavailableError as error:
                self._sit_out(error, since)
            except verdicts.Verdict as refused:
                self._reached, verdict, since = True, refused, self._clock.now_ms()

    def beat(self, verb: Callable[[Caller], Answer[None]]) -> bool:
        """One heartbeat, on its own thread: what goes wrong is left for the next `call`. Whether it went well."""
        return self._once(verb, number="", what="heartbeat")

    def last(self, verb: Callable[[Caller], Answer[T]]) -> bool:
        """One more call before the member leaves, without retries. Whether it went well."""
        return self._once(verb, str(next(self._numbers)), what="last commit")

    def _once(self, verb: Callable[[Caller], Answer[T]], number: str, what: str) -> bool:
        caller = self.caller
        if not caller.nonce:
            return False
        try:
            self._renewing(verb, replace(caller, number=number))
        except RedisUnavailableError as error:
            self._say_away(error, what)
            return False
        except (CoopKafkaError, verdicts.Verdict) as error:
            _log.warning("%s of %s: %s", what, self._member, error or type(error).__name__)
            return False
        with self._lock:
            self._away = None
        return True

    def _say_away(self, error: RedisUnavailableError, what: str) -> None:
        """Say once, and then seldom, what each heartbeat of an outage finds."""
        now = self._clock.now_ms()
        with self._lock:
            since, said = self._away or (now, now - SAY_AGAIN_MS)
            due = now - said >= SAY_AGAIN_MS
            self._away = since, now if due else said
        if due:
            patience = (
                f"the query fails once it has needed Redis for redis.max.outage ({self._settings.max_outage_ms} ms)"
            )
            _log.warning("%s of %s: %s For %d s now; %s", what, self._member, error, (now - since) // 1000, patience)

    def rejoin(self) -> None:
        """Join again before the next call, since what it says of itself has changed."""
        self._joined = ""

    def leave(self, unconfirmed: Mapping[TopicPartition, Sequence[HashRange]]) -> bool:
        """Say goodbye once, without retries: what fails is left to the end of the lease. Whether it went well."""
        if not self._joined:
            return False
        try:
            self._store.leave(self.caller, unconfirmed)
        except (CoopKafkaError, verdicts.Verdict) as error:
            _log.warning("%s could not leave: %s", self._member, error or type(error).__name__)
            return False
        self._joined = ""
        return True

    def tell(self, kind: str, why: str, ranges: Ranges | None = None) -> None:
        """Tell the events stream; a Redis that does not answer is not waited for."""
        try:
            self._store.event(kind, why, self._member, ranges)
        except CoopKafkaError as error:
            _log.warning("%s could not tell the event %r (%s): %s", self._member, kind, why, error)

    def _renewing(self, verb: Callable[[Caller], Answer[T]], caller: Caller) -> T:
        asked = self._clock.now_ms()
        answer = verb(caller)
        with self._lock:
            if answer.seen.nonce == self._joined:  # else it is late, of before a loss of state
                if not self._seen or self._seen.seq < answer.seen.seq:
                    self._seen = answer.seen
                self._lease_end = max(self._lease_end, asked + self._settings.session_ms)
        return answer.value

    def _join(self) -> None:
        asked = self._clock.now_ms()
        answer = self._store.join(self.caller, self._joined_before, self._joining())
        with self._lock:
            self._seen, self._joined, self._lease_end = (
                answer.seen,
                answer.seen.nonce,
                asked + self._settings.session_ms,
            )
        self._joined_before, self._other, self.targets = self._joined, None, answer.value

    def _handle(self, verdict: verdicts.Verdict) -> None:
        match verdict:
            case verdicts.Rejoin():
                self._joined = ""
            case verdicts.Lost():
                self._recover(self.caller, str(verdict))
                self._joined = ""
            case verdicts.Recovering():
                self._assert_once()
                self._clock.wait(RETRY_MS)
            case verdicts.Busy():
                self._wait_for_other(verdict)
            case verdicts.Fenced():
                self.tell("fence", "another life of this member has joined")
                raise FencedMemberError(
                    f"another driver with the same checkpoint has taken over member {self._member} of group "
                    f"{self._settings.group!r}{self._by_whom()}",
                    "give each query a checkpoint of its own; this one has lost nothing and can be stopped",
                ) from None

    def _by_whom(self) -> str:
        """Host, driver and time of who is this member now, as far as Redis tells."""
        try:
            said = self._metadata(self._member)
            if not said:
                return ", or somebody deleted its entry in Redis"
            at = datetime.fromtimestamp(int(said["joined_at"]) / 1000, UTC).isoformat(timespec="seconds")
            return f": pid {said.get('driver_pid', 'unknown')} on host {said['host']}, at {at}"
        except (CoopKafkaError, verdicts.Verdict, KeyError, ValueError, OverflowError, OSError):
            return ""

    def _assert_once(self) -> None:
        if self._asserted != self._joined:
            _log.warning(
                "group %s recovers from a loss of state: members prove their positions, and no batch is planned for up "
                "to session.timeout.ms (%d ms); nothing is to be done",
                self._settings.group,
                self._settings.session_ms,
            )
            self._assert_positions()
            self._asserted = self._joined

    def _wait_for_other(self, busy: verdicts.Busy) -> None:
        """A lease that grows while we look belongs to a living member; one that does not is waited for.

        A read of our own query lives as long as we do.
        """
        if same_query(self._joining().fields, self._metadata(busy.member)):
            raise two_reads(self._settings.group, busy.member) from None
        if self._other and self._other[0] == busy.member and busy.lease_end_ms > self._other[1]:
            raise two_queries(self._settings.group, busy.member) from None
        self._other = (busy.member, busy.lease_end_ms)
        self._clock.wait(min(RETRY_MS, busy.lease_end_ms - busy.now_ms + 1))

    def _metadata(self, member: str) -> Mapping[str, str]:
        """What a member reports of itself; nothing where it has left, or where its entry is damaged."""
        try:
            return next((s.metadata for s in self._store.subscribers([member])), {})
        except StateFormatError:
            return {}

    def _sit_out(self, error: RedisUnavailableError, since: int) -> None:
        limit = self._settings.max_outage_ms
        if not self._reached:
            limit = min(limit, FIRST_CONTACT_MS)
        if self._clock.now_ms() - since >= limit:
            patience = "redis.max.outage" if self._reached else "what a first contact may take"
            raise RedisUnavailableError(
                f"{error.what}, for longer than {patience} ({limit} ms)", error.remedy
            ) from None
        self._clock.wait(RETRY_MS)
