"""Records a schedule as steps of `specs/LeaseTrace.tla`, of all members together.

A step names its process: a member, and the number of its incarnation. A record ends with the first step that is not in
the model.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import redis

from coordinator.assignment.assignment_text import ranges_of
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.client import RedisClient
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller
from coordinator.redis.verb import Reply
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition
from coordinator.values.verdicts import Fenced, Verdict
from simulation.kafka import SimulatedKafka
from simulation.recorder import OUTSIDE, Recorder, Step, at, by_hashes, partitions

Process = tuple[str, int]
NOBODY, FREE, NO_SLICE = "nobody", ("nobody", 0), (0, 0, 0)

_RENEWING = {"heartbeat", "seal", "report", "working", "forget", "assign", "finish"}
"""Verbs that renew a lease and change nothing else of the model: `assign` too late, `finish` too early."""

_JUDGING = {"acquire", "assign", "release"}
"""Verbs that ask which leases have ended."""

_REPEATED, _BETWEEN = {"heartbeat", "look"}, {"acquire", "release", "plan", "authorize", "complete", "commit"}
"""Steps that change nothing a second time, and steps between the two that do not matter."""

_STATE = ("owner", "position", "assigned")


class Look(NamedTuple):
    """What the model has of the state in Redis, in the order of the lanes."""

    owner: tuple[tuple[str, int], ...] = ()  # member and lane epoch
    position: tuple[int, ...] = ()
    assigned: tuple[str, ...] = ()
    epochs: int = 0  # the last lane epoch
    ended: frozenset[str] = frozenset()  # members whose ranges are takeable
    due: object = None  # an assignment is due if it changes: topics and policies


class LeaseRecorder(Recorder):
    """The steps of one schedule."""

    def __init__(self, client: RedisClient, text: redis.Redis, keys: GroupKeys, kafka: SimulatedKafka) -> None:
        super().__init__(client, text, keys, kafka)
        self.steps: list[Step] = []
        self._names: dict[str, str] = {}  # of members
        self._lives: dict[str, list[str]] = {}  # the incarnations of each member, in the order of their joins
        self._runs: set[str] = set()  # members whose lease has not ended in the record
        self._gone: set[Process | None] = set()
        self._repeated: list[Step] = []
        self._last = Look()

    @property
    def records(self) -> Sequence[Sequence[Step]]:
        """All members together."""
        return [self.steps]

    def noted(self, what: str, caller: Caller, fact: Any) -> None:
        """An entry of Spark's offset log, or of its commit log."""
        process = self._process(caller.member, caller.incarnation)
        if self.ends_at or process is None or what not in ("offset log", "commit log"):
            return
        if process[1] < len(self._lives[caller.member]):
            self.ends_at.append("two drivers write the logs of one checkpoint")
        else:
            step = {"ev": "plan", "slices": self._slices(fact)} if what == "offset log" else {"ev": "complete"}
            self._append({**step, "p": process})

    # -- steps ---------------------------------------------------------------------------------

    def _ran(self, verb: str, keys: Sequence[str], asked: Mapping[str, Any], answer: Reply | Verdict) -> None:
        if self.ends_at:
            return
        call, before = asked["call"], self._last
        self._last = now = self._look(int(call["now"]))
        if self._lives and now.due != before.due:
            self._append({"ev": "due"})
        process = self._process(call["member"], call["incarnation"])
        if isinstance(answer, Fenced) and process and now[: len(_STATE)] == before[: len(_STATE)]:
            self._append({"ev": "fenced", "p": process})
            return
        tps = partitions(keys)
        step = None if isinstance(answer, Verdict) else self._step(verb, tps, asked["arguments"], answer, process)
        if step and (process or step["ev"] in ("join", "claim")):
            self._changes(step, call["member"], call["incarnation"], before)
        else:
            self.beside[verb if not isinstance(answer, Verdict) else f"{verb}: {type(answer).__name__}"] += 1
            if self._lives and ((step is None and verb == "finish") or now[: len(_STATE)] != before[: len(_STATE)]):
                self.ends_at.append(f"{verb} {OUTSIDE}")

    def _step(
        self, verb: str, tps: list[TopicPartition], given: Mapping[str, Any], reply: Reply, process: Process | None
    ) -> Step | None:
        """The step of a verb; None of a verb that the model does not have."""
        match verb:
            case "join" | "leave" | "claim":
                step: Step = {"ev": "join again" if verb == "join" and process else verb}
            case "look":
                step = {"ev": verb, "lanes": self._in(ranges_of(reply["mine"]))}
            case "acquire" | "release":
                step = {"ev": verb, "lanes": self._within(tps, given["wanted" if verb == "acquire" else "ranges"])}
            case "authorize":
                step = {"ev": verb, "lanes": self._authorized(tps, given["lanes"], reply["owned"])}
            case "commit" if not reply["unread"]:
                what = verb if given["digest"] else "late commit"
                named = self._named(tps, given["facts"])
                step = {"ev": what, "named": named, "refused": self._refused(tps, reply["refused"])}
            case "assign" if int(reply["generation"]):
                step = {"ev": verb}
            case _:
                over = verb == "finish" and int(reply["finished"])
                return {"ev": "heartbeat"} if verb in _RENEWING and not over else None
        return step

    def _changes(self, step: Step, member: str, incarnation: str, before: Look) -> None:
        """Add the step of a verb, after what it shows about leases."""
        now = self._last
        for other in sorted((now.ended & self._runs) - {member}) if step["ev"] in _JUDGING else ():
            self._runs.discard(other)
            self._append({"ev": "lease ends", "m": self._name(other)})
        if step["ev"] == "join":
            self._lives.setdefault(member, []).append(incarnation)
        if step["ev"] != "claim":  # its caller is no member
            step["p"] = self._process(member, incarnation)
            leaves, keeps = step["ev"] == "leave", self._name(member) in (owner for owner, _ in now.owner)
            if (
                step["p"] not in self._gone or step["ev"] == "join again" or (keeps and not leaves)
            ):  # else it is no renewal
                self._runs = self._runs | {member} if keeps or not leaves else self._runs - {member}
            self._gone |= {step["p"]} if leaves else set()
        if now.epochs != before.epochs and now.epochs not in (epoch for _, epoch in now.owner):
            self._append({"ev": "elsewhere"})
        changed = {what for what in _STATE if getattr(now, what) != getattr(before, what)}
        self._append(step | {what: getattr(now, what) for what in _STATE if what in changed})

    def _append(self, step: Step) -> None:
        if step["ev"] not in _REPEATED:
            self._repeated = self._repeated if step["ev"] in _BETWEEN else []
        elif step in self._repeated:
            self.repeats += 1
            return
        else:
            self._repeated.append(step)
        self.steps.append(step)

    # -- processes and lanes -------------------------------------------------------------------

    def _name(self, member: str) -> str:
        return self._names.setdefault(member, f"m{len(self._names) + 1}")

    def _process(self, member: str, incarnation: str) -> Process | None:
        lives = self._lives.get(member, [])
        return (self._name(member), lives.index(incarnation) + 1) if incarnation in lives else None

    def _named(self, tps: Iterable[TopicPartition], facts: Iterable[str]) -> tuple[int, ...]:
        """The lane epoch that a commit names for each lane; 0 for none."""
        named = [0] * len(self.lanes)
        for tp, text in zip(tps, facts, strict=True):
            for fact in filter(None, text.split(";")):
                hashes, epoch, _ = fact.split(" ", 2)
                for n in self._in({tp: [HashRange.parse(hashes)]}):
                    named[n - 1] = _counter(epoch)
        return tuple(named)

    def _slices(self, end: StreamOffset) -> tuple[tuple[int, int, int], ...]:
        """Of each lane: lane epoch, first offset of its slice, and the one after the last."""
        slices = [NO_SLICE] * len(self.lanes)
        for n, (tp, key_hash) in enumerate(self.lanes):
            for lane in end.lanes.get(tp, ()):
                if key_hash in lane.hashes and lane.offsets:
                    slices[n] = (_counter(lane.epoch), lane.position - self._first[n], lane.until - self._first[n])
        return tuple(slices)

    # -- the state in Redis --------------------------------------------------------------------

    def _look(self, now_ms: int) -> Look:
        k, together = self._keys, self._text.pipeline(transaction=True)
        of_tps = [of(tp) for tp in self._tps for of in (k.owners, k.segments)]
        for key in (k.meta, k.assignment, k.topics, k.policy, *of_tps):
            together.hgetall(key)
        for key in (k.leases, k.batches):
            together.zrange(key, 0, -1, withscores=True)
        meta, assignment, topics, policy, *hashes, leases, batches = together.execute()
        found = dict(zip(of_tps, map(by_hashes, hashes), strict=True))
        owner, position, assigned = [], [], [NOBODY] * len(self.lanes)
        for n, (tp, key_hash) in enumerate(self.lanes):
            epoch, _, member = at(found[k.owners(tp)], key_hash).partition(" ")
            owner.append((self._name(member), _counter(epoch)) if member else FREE)
            position.append(self._position(n, found[k.segments(tp)]))
        for member, text in sorted(assignment.items()):
            for n in self._in(ranges_of(text)):
                assigned[n - 1] = self._name(member)
        lives, hung = dict(leases), {m for m, at in batches if at < now_ms}
        ended = frozenset(m for m in self._lives if lives.get(m, 0) < now_ms or m in hung)
        epochs = int(meta.get("epochs", 0))
        return Look(tuple(owner), tuple(position), tuple(assigned), epochs, ended, (topics, policy))


def _counter(epoch: str) -> int:
    return int(epoch.rpartition(".")[2])
