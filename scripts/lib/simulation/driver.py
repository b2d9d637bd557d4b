"""A Spark driver: its calls to the source in Spark's order, with WAL, commit log, tasks and sink, which survive it.

    start      no WAL: initialOffset. A WAL without its commit: the last batch again
    loop       latestOffset(start) -> WAL -> a batch -> commit log
    end        a normal stop, or the JVM dies: leave. A kill of all: nothing. Tasks may always write on for a while

Each actor's code reads like Spark's; every call of the service has scheduling points inside it.
"""

from contextlib import suppress

from coordinator.assignment.settings import GroupSettings
from coordinator.errors import CoopKafkaError
from coordinator.member.decision import LOOK_MS
from coordinator.progress.ends import ended
from coordinator.progress.ownership import completed
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.group_state import STANDBY
from coordinator.redis.replies import SETTLE_MS
from coordinator.redis.store import store_of
from coordinator.values.ranges import HashRange
from coordinator.values.verdicts import Verdict
from simulation import failing, pins, promises
from simulation.batch import Batch
from simulation.checkpoint import Checkpoint
from simulation.kafka import Record
from simulation.process import Process, offset_of, text_of
from simulation.sink import Violation
from simulation.wishes import Wishes
from simulation.work import Work
from simulation.world import World

GRANTING = ("acquire", "authorize", "hand_out")
"""The scripts that give a member ranges or a batch."""


_MOMENT_MS = 100  # between a script and the look at what it left


class Driver(Process):
    """One life of one application: its query."""

    def __init__(
        self, world: World, work: Work, name: str, checkpoint: Checkpoint, wishes: Wishes, settings: GroupSettings
    ) -> None:
        super().__init__(world, name, checkpoint, wishes, settings)
        self._work = work
        self._planned: list[str] = []  # the offsets in the offset log at its start
        self._asked_ms = 0

    def _serve(self, world: World) -> None:
        super()._serve(world)
        self.line.ran = self._ran
        self._has_joined, self._cuts = False, 0
        self._resets = world.invariants.reset
        self._planned_since, self._asked_at_redis_ms = len(world.invariants.states) - 1, world.server.now_ms  # its TIME
        self._ended_at = world.invariants.state  # the state when AvailableNow was last checked
        self._looked: tuple[str, set[str]] = "", set()  # its role and lane epochs at its last look

    def _spark(self) -> None:
        ck = self.checkpoint
        self.note("starts", ck)
        self._planned = list(ck.wal)
        replays = bool(ck.wal) and len(ck.wal) - 1 not in ck.committed
        if self.wishes.available_now:
            self.open()
            with self.jvm.calling():
                self.query.set_targets()
        if not self._planned:
            self._initial()
        elif replays and not self._batch(len(self._planned) - 1):
            return
        while self._next_batch():
            interval = self.wishes.interval_ms
            self.world.scheduler.turn(interval and interval - self.world.scheduler.now_ms % interval)

    def _next_batch(self) -> bool:
        """Whether the query goes on."""
        ck, n = self.checkpoint, len(self._planned)
        end = self._latest(self._planned[-1] if self._planned else self._initial_offset())
        if end is None:
            if self.wishes.available_now:
                self._finished()
            return not self.wishes.available_now
        if len(ck.wal) != n:
            self.concurrent("offset log")
            return False
        ck.wal.append(end)
        ck.planned_with.append(self.filter)
        self.note("offset log", offset_of(end))
        self._planned.append(end)
        self.trace(f"WAL {n}: {end}")
        if any(pins.outside(lane.hashes, self.pinned) for _, lane in offset_of(end)):
            raise Violation(f"PINNED: {self.name} plans hashes that it does not name: {end}")
        planned = [r for s in offset_of(end).slices for r in self.world.kafka.read(s)]
        self._check_plan(offset_of(end), planned)
        if self.world.joined:
            states = self.world.invariants.states[self._planned_since :]
            promises.joined_hashes_have_one_owner(offset_of(end), self.member, states, self.world.kafka.topics)
        self.line.passes("the WAL")
        self.world.scheduler.turn()
        return self._batch(n)

    def _finished(self) -> None:
        targets = self.service.state.pace.targets or {}
        gated = self.service.state.growing.closed  # new partitions that must wait for older ones
        missing = [r for tp, end in targets.items() if tp not in gated for r in self.world.needed(tp, end)]
        in_order = self.service.state.owning.policy.in_order
        missing = [r for r in missing if not self._ended_at.parked(r, in_order=in_order(r.tp.topic))]
        missing = [r for r in missing if not self.world.cuts.excuses(r)]
        missing = [r for r in missing if not pins.outside(HashRange(r.hash, r.hash), self.pinned)]
        if missing and self._resets == self.world.invariants.reset:  # else an operator moved positions back meanwhile
            raise Violation(f"AVAILABLE NOW: {self.name} ended before {missing[0]} was in the sink")
        self.end("AvailableNow has ended")

    def _ran(self, verb: str) -> None:
        seen = self.world.invariants
        promises.no_log_was_cut(verb, happened=self.world.cuts.happened)
        if verb == "recreate":
            self.world.server.seen["cut accepted"] += 1
            self.world.cuts_found()
        if verb in GRANTING and seen.state.filter != self.filter.text:
            raise Violation(f"FILTER: {self.name} has {self.filter.text!r}: {verb} beside {seen.state.filter!r}")
        if verb == "join":
            self.world.lives[self.member] = self.world.lives[self.member] if self._has_joined else self.name
            self._has_joined = True
            self.world.joined_with[self.member] = self.settings
        self._check_recovery(verb)
        if verb in ("look", "acquire"):
            self._check_role(verb)
        if verb == "acquire" and self.world.modelled == "Lease":
            self._commit_of_before()
        if verb == "finish":
            self._ended_at = seen.state
        if verb == "leave":
            self._check_wait()
        if verb == "leave" and self.tasks:  # at once: an old copy may answer before `leave` returns
            end = self._true_end(offset_of(self._planned[-1]))
            if end is not None:
                promises.kept_what_may_be_written(end, self._before_leaving, seen.state, seen.last_owner)

    def _commit_of_before(self) -> None:
        """Commit an earlier batch with a lane that this member has again, at another lane epoch.

        Only two drivers of one checkpoint come to such a call, and hardly ever.
        """
        owned = [
            (tp, o) for tp, of_tp in self.world.invariants.state.owners.items() for o in of_tp if o[2] == self.member
        ]
        for end in map(offset_of, reversed(self.checkpoint.wal[:-1])):
            lanes = ((lane, hashes, epoch) for tp, lane in end for at, (hashes, epoch, _) in owned if tp == at)
            if any(epoch != lane.epoch and hashes.intersection(lane.hashes) for lane, hashes, epoch in lanes):
                self.trace("commits an earlier batch")
                calls = ScriptCalls.of(self.line, self.settings, now=lambda: self.world.server.now_ms)
                with suppress(CoopKafkaError, Verdict):
                    store_of(calls).positions.commit(self.service.state.life.caller, end, completed(end))
                return

    def _check_recovery(self, verb: str) -> None:
        """A recovery waits for the longest session, or until all are heard."""
        recoveries, seen, now_ms = self.world.recoveries, self.world.invariants, self.world.server.now_ms
        session_ms, before = self.settings.session_ms, seen.leases_before
        if verb == "recover" and seen.state.nonce != seen.nonce_before:
            recoveries.recovered(seen.state.nonce, session_ms, now_ms, before, anew=not before)
        recoveries.ran(verb, seen.state.nonce, self.member, session_ms, now_ms)

    def _check_wait(self) -> None:
        """Others wait for the whole lease only if a task may read on. Nobody strikes the slices of a polite end."""
        server = self.world.server
        its_end = server.raw.zscore(server.keys.leases, self.member)
        if server.raw.hexists(server.keys.working, self.member):
            raise Violation(f"STRIKE: {self.name} has left, and its slices count as begun")
        if its_end is None:
            return
        server.seen["left in a batch"] += 1
        left_ms = its_end - server.now_ms
        whole_ms = min(self._lease_ms - server.now_ms, self.settings.session_ms - _MOMENT_MS)
        if (
            self.writers and left_ms < whole_ms and server.skew_ms == self._skew_ms
        ):  # else the lease is of another clock
            raise Violation(f"LATE: {self.name}: {self.writers}, and others may acquire its ranges in {left_ms} ms")
        if not self.writers and left_ms > SETTLE_MS:
            raise Violation(f"WAIT: all tasks of {self.name} have stopped, and others wait for {left_ms} ms")

    def _check_role(self, verb: str) -> None:
        """A standby acquires nothing."""
        standbys, state = self.world.standbys, self.world.invariants.state
        epochs = {epoch for owners in state.owners.values() for _, epoch, member in owners if member == self.member}
        if verb == "look":
            now_ms, alone = self.world.server.now_ms, self.world.alone
            standbys.looked(self.world.invariants.members, len(state.assignment), now_ms, alone=alone)
            self._looked = standbys.role(self.member), epochs
        elif self._looked[0] == STANDBY and (gained := epochs - self._looked[1]):
            raise Violation(f"STANDBY: {self.name} acquires ranges at {sorted(gained)}")

    def _true_end(self, end: StreamOffset) -> StreamOffset | None:
        """The end of the last batch, as far as its tasks or an earlier life ended it early; None if it is committed."""
        batch = self.service.state.batch
        if batch is None or batch.end != end:
            return None
        ends = self.service._inbox.ends(end)  # noqa: SLF001 - only looked at
        return ended(batch.bounded(end), ends or {})

    # -- Spark's calls -------------------------------------------------------------------------

    def _initial_offset(self) -> str:
        return text_of(StreamOffset(self.world.group))

    def _initial(self) -> None:
        self.open()
        self.creating = True
        for _ in range(self.wishes.initial_calls):
            with self.jvm.calling():
                self.query.first_positions()
        self.creating = False

    def _latest(self, start: str) -> str | None:
        self.open()
        self._planned_since, self._asked_ms = len(self.world.invariants.states) - 1, self.world.scheduler.now_ms
        self._asked_at_redis_ms = self.world.server.now_ms
        with self.jvm.calling():
            end = self.query.next_offset(offset_of(start), self.wishes.limits)
        return None if end is None or text_of(end) == start else text_of(end)

    def _check_plan(self, end: StreamOffset, planned: list[Record]) -> None:
        states, seen = self.world.invariants.states[self._planned_since :], self.world.server.seen
        before, now = states[0], states[-1]
        promises.nothing_confirmed(planned, states)
        counted = [state.within(self.pinned) for state in states]
        seen["back-pressure"] += promises.holds_back(planned, counted, self.settings.max_individual_commits)
        struck = [s for s in before.strikes & now.strikes if self.world.trials.struck_at[s] < self._asked_ms - LOOK_MS]
        policy = self.service.state.owning.policy
        struck = [s for s in struck if not policy.in_order(s.tp.topic)]  # there, a partition is one lane
        seen["on trial"] += promises.tries_apart(end, planned, struck, before, now)
        if self.wishes.limits.max_offsets is None:  # else the user's limit cuts pieces as well
            self.world.trials.planned(end, struck, before)
        asked_ms, now_ms = self._asked_at_redis_ms, self.world.server.now_ms
        seen["failing tried"] += failing.waits_for_its_time(planned, before, now, asked_ms, now_ms)
        quotas = self.service.state.reading.quotas
        seen.update(f"quota: {why}" for why in {q.why for q in quotas})
        cuts = sum(map(len, self.service.guesses._known.bounds.values()))  # noqa: SLF001 - only counted
        seen["cut by cost"] += cuts > self._cuts
        seen["merged by cost"] += cuts < self._cuts
        self._cuts = cuts

    def _batch(self, n: int) -> bool:
        """Run batch `n`; whether the query goes on."""
        if n == 0:
            self._initial()
        self.open()
        end = offset_of(self._planned[n])
        batch = Batch(self, self._work, self._world_of(end), n, end)
        return (self._skipped(n) or batch.run()) and self._log_commit(n)

    def _world_of(self, end: StreamOffset) -> World:
        """The group in which a batch was planned."""
        return self.world

    def _log_commit(self, n: int) -> bool:
        """Write batch `n` to the commit log; whether the query goes on."""
        if n in self.checkpoint.committed:
            self.concurrent("commit log")
            return False
        self.checkpoint.committed.add(n)
        self.note("commit log")
        self.trace(f"commit log {n}")
        self.world.scheduler.turn()
        return True

    def _skipped(self, n: int) -> bool:
        """Whether the sink has batch `n` already, of this or another checkpoint: then Spark requests no partitions."""
        ck, world = self.checkpoint, self._world_of(offset_of(self._planned[n]))
        if not (n < ck.taken or world.sink.skips(ck.name, n)):
            return False
        self.trace(f"the sink has batch {n} already")
        self.note("skips")
        world.server.seen["the sink had it"] += 1
        ck.skipped |= n < ck.taken
        return True
