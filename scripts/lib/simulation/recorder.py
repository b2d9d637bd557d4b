"""Records a schedule as steps of `specs/LeaseTrace.tla`: what passes between members and Redis, and what is then there.

    lane      a partition at one of the key hashes of the simulation, so cuts of ranges do not show
    process   a member, and the number of its incarnation
    step      an action with its process, and the state of Redis after it, as far as that has changed

It reads Redis itself after each verb, and judges nothing. A record ends with the first step that is not in the model.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import redis

from coordinator.assignment.assignment_text import ranges_of
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.client import RedisClient, TextRedis
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller
from coordinator.redis.verb import Reply
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition
from coordinator.values.verdicts import Fenced, Verdict
from simulation.kafka import HASHES

Step = dict[str, Any]
Process = tuple[str, int]
NOBODY, FREE, NO_SLICE = "nobody", ("nobody", 0), (0, 0, 0)

_RENEWING = {"heartbeat", "seal", "report", "working", "forget", "assign", "finish"}
"""Verbs that renew a lease and change nothing else of the model: `assign` too late, `finish` too early."""

_JUDGING = {"acquire", "assign", "release"}
"""Verbs that ask which leases have ended."""

_REPEATED, _BETWEEN = {"heartbeat", "look"}, {"acquire", "release", "plan", "authorize", "complete", "commit"}
"""Steps that change nothing a second time, and steps between the two that do not matter."""

_STATE = ("owner", "position", "assigned")
_PARTITION = re.compile(r":owners:(.+):(\d+)$")


class Look(NamedTuple):
    """What the model has of the state in Redis, in the order of the lanes."""

    owner: tuple[tuple[str, int], ...] = ()  # member and lane epoch
    position: tuple[int, ...] = ()
    assigned: tuple[str, ...] = ()
    epochs: int = 0  # the last lane epoch
    ended: frozenset[str] = frozenset()  # members whose ranges are takeable
    due: object = None  # an assignment is due if it changes: topics and policies


class Recorder(RedisClient):
    """The steps of one schedule. It takes the place of the client that runs all scripts; `text` decodes replies."""

    def __init__(self, client: RedisClient, text: redis.Redis, keys: GroupKeys, tps: Iterable[TopicPartition]) -> None:
        self._client, self._text, self._keys, self._tps = client, text, keys, sorted(tps)
        self.lanes = [(tp, key_hash) for tp in self._tps for key_hash in HASHES]
        self.steps: list[Step] = []
        self.repeats = 0  # steps that it leaves out, because they repeat one that has changed nothing
        self.beside: Counter[str] = Counter()  # verbs and verdicts that are no step
        self.ends_at = ""  # why the record ends before the schedule
        self._names: dict[str, str] = {}  # of members
        self._lives: dict[str, list[str]] = {}  # the incarnations of each member, in the order of their joins
        self._runs: set[str] = set()  # members whose lease has not ended in the record
        self._first: dict[int, int] = {}  # of a lane: its first position
        self._repeated: list[Step] = []
        self._last = Look()

    def run(self, verb: str, keys: Sequence[str], args: Sequence[str]) -> Reply:
        """Run a script, and record it with its reply or verdict."""
        try:
            reply = self._client.run(verb, keys, args)
        except Verdict as verdict:
            self._ran(verb, keys, json.loads(args[0]), verdict)
            raise
        self._ran(verb, keys, json.loads(args[0]), reply)
        return reply

    @contextmanager
    def reading(self) -> Iterator[TextRedis]:
        """The plain client."""
        with self._client.reading() as plain:
            yield plain

    def logged(self, caller: Caller, end: StreamOffset | None) -> None:
        """Spark's offset log has this offset from now on; without one, its commit log has the last batch."""
        process = self._process(caller.member, caller.incarnation)
        if self.ends_at or process is None:
            return
        if process[1] < len(self._lives[caller.member]):
            self.ends_at = "two drivers write the logs of one checkpoint"
        else:
            step = {"ev": "plan", "slices": self._slices(end)} if end else {"ev": "complete"}
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
        if isinstance(answer, Fenced) and process:
            self._append({"ev": "fenced", "p": process})
            return
        tps = [TopicPartition(m[1], int(m[2])) for m in map(_PARTITION.search, keys) if m]
        step = None if isinstance(answer, Verdict) else self._step(verb, tps, asked["arguments"], answer, process)
        if step and (process or step["ev"] in ("join", "claim")):
            self._changes(step, call["member"], call["incarnation"], before)
        else:
            self.beside[verb if not isinstance(answer, Verdict) else f"{verb}: {type(answer).__name__}"] += 1
            if self._lives and ((step is None and verb == "finish") or now[: len(_STATE)] != before[: len(_STATE)]):
                self.ends_at = f"{verb} is not in the model"

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
                lines = zip(_lines(reply["owned"], tps), given["lanes"], strict=True)
                step = {"ev": verb, "lanes": self._within(tps, [line.replace("all", asked) for line, asked in lines])}
            case "commit" if not reply["unread"]:
                step = {"ev": verb, "refused": self._within(tps, _lines(reply["refused"], tps))}
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
            keeps = step["ev"] != "leave" or self._name(member) in (owner for owner, _ in now.owner)
            self._runs = self._runs | {member} if keeps else self._runs - {member}
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

    def _in(self, ranges: Mapping[TopicPartition, Iterable[HashRange]]) -> set[int]:
        """The numbers of the lanes in these ranges."""
        lanes = enumerate(self.lanes, 1)
        return {n for n, (tp, key_hash) in lanes if any(key_hash in hashes for hashes in ranges.get(tp, ()))}

    def _within(self, tps: Iterable[TopicPartition], texts: Iterable[str]) -> set[int]:
        """The same, of a text `lo-hi ...;...` for each partition."""
        parts = zip(tps, texts, strict=True)
        return self._in(
            {tp: [HashRange.parse(part.split()[0]) for part in text.split(";") if part] for tp, text in parts}
        )

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
        found = dict(zip(of_tps, map(_by_hashes, hashes), strict=True))
        owner, position, assigned = [], [], [NOBODY] * len(self.lanes)
        for n, (tp, key_hash) in enumerate(self.lanes):
            epoch, _, member = _at(found[k.owners(tp)], key_hash).partition(" ")
            owner.append((self._name(member), _counter(epoch)) if member else FREE)
            offset = _at(found[k.segments(tp)], key_hash)
            position.append(int(offset) - self._first.setdefault(n, int(offset)) if offset else 0)
        for member, text in sorted(assignment.items()):
            for n in self._in(ranges_of(text)):
                assigned[n - 1] = self._name(member)
        lives, hung = dict(leases), {m for m, at in batches if at < now_ms}
        ended = frozenset(m for m in self._lives if lives.get(m, 0) < now_ms or m in hung)
        epochs = int(meta.get("epochs", 0))
        return Look(tuple(owner), tuple(position), tuple(assigned), epochs, ended, (topics, policy))


def _lines(text: str, tps: Sequence[TopicPartition]) -> list[str]:
    """A line for each partition."""
    return text.split("\n") if tps else []


def _counter(epoch: str) -> int:
    return int(epoch.rpartition(".")[2])


def _by_hashes(fields: Mapping[str, str]) -> list[tuple[HashRange, str]]:
    return [(HashRange.parse(hashes), value) for hashes, value in fields.items()]


def _at(values: Iterable[tuple[HashRange, str]], key_hash: int) -> str:
    return next((value for hashes, value in values if key_hash in hashes), "")
