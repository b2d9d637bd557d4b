"""Records a schedule as steps of `specs/LossTrace.tla`, of each partition by itself, with all processes.

    record    an offset and the leader epoch that wrote it, from 1; other records of this offset are others
    process   a life of a driver; it knows the last batch of its checkpoint

Before each script it looks whether Redis, the log or the mirror have changed since the last one. A record ends with the
first script that is not in the model, and changes what the model has of Redis.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import redis

from coordinator.progress import mirror
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.client import RedisClient
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller
from coordinator.redis.verb import Reply
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition
from coordinator.values.verdicts import Replaced, Verdict
from simulation.checkpoint import Checkpoint
from simulation.kafka import HASHES, Record, SimulatedKafka
from simulation.process import offset_of
from simulation.recorder import OUTSIDE, Recorder, Step, at, by_hashes, partitions

SESSION = "session"
"""In `unheard`: the members of before are not all known."""

_GONE = {"founding": 0, "nonce": 0, "run": 0, "reset": 0, "lepoch": 0, "unheard": frozenset[str]()}
_NOWHERE = (0,) * len(HASHES)


@dataclass(slots=True)
class _Part:
    """The record of one partition."""

    tp: TopicPartition
    steps: list[Step] = field(default_factory=list)
    redis: dict[str, Any] = field(default_factory=lambda: {**_GONE, "pos": _NOWHERE})
    firsts: tuple[int, ...] = ()  # the first offset of each leader epoch but the first
    mirror: tuple[int, int, int, int] = (0, 0, 0, 0)
    under: dict[Record, int] = field(default_factory=dict)  # the leader epoch that wrote each record
    acquired: set[str] = field(default_factory=set)  # processes that have acquired since the last change
    resets: set[int] = field(default_factory=lambda: {0})  # reset epochs that Redis had
    resetting: int = 0  # the reset epoch to which an operator has reset Redis, until it has written the mirror again
    deleted: bool = False
    over: bool = False


class LossRecorder(Recorder):
    """The steps of one schedule."""

    def __init__(self, client: RedisClient, text: redis.Redis, keys: GroupKeys, kafka: SimulatedKafka) -> None:
        super().__init__(client, text, keys, kafka)
        self.lanes = self.lanes[: len(HASHES)]  # of one partition
        self._kafka = kafka
        self._parts = [_Part(tp) for tp in self._tps]
        self._processes: dict[str, str] = {}  # by incarnation
        self._members: dict[str, str] = {}
        self._numbers: dict[str, int] = {"": 0}  # of nonces
        self._saw: dict[str, frozenset[tuple[int, int]]] = {}  # by process: see `_beside_redis`
        self._ended: set[str] = set()
        self._now_ms = 0
        for part in self._parts:
            part.firsts = tuple(kafka.elected[part.tp])
            part.steps.append({"ev": "begins", "firsts": part.firsts})

    @property
    def records(self) -> Sequence[Sequence[Step]]:
        """One of each partition."""
        for part in self._parts:
            found = [set[tuple[int, int]]() for _ in HASHES]
            for record, epoch in part.under.items():
                if record.hash in HASHES:
                    found[HASHES.index(record.hash)].add((record.offset, epoch))
            part.steps[0]["records"] = tuple(map(frozenset, found))
        return [_ranked(part.steps) for part in self._parts]

    # -- Spark and the sink --------------------------------------------------------------------

    def noted(self, what: str, caller: Caller, fact: Any) -> None:
        """A step of Spark or the sink."""
        p = self._process(caller.incarnation)
        for part in self._parts:
            self._look_at_kafka(part)
            if what == "starts":
                step = self._starts(part.tp, fact) | {"p": p}
                self._add(part, step | {"ev": "start"} if part.deleted and not step["knows"] else step)
            elif what == "offset log":
                begins, ends = self._slices(part.tp, fact)
                under, of = self._under(part.tp, fact), {"knows": self._number(fact.founding), "at": fact.reset}
                self._add(part, {"ev": "plan", "p": p, "begins": begins, "ends": ends, "under": under, **of})
            elif what == "arrives":
                got = [set[tuple[int, int]]() for _ in HASHES]
                for record in fact:
                    if record.tp == part.tp and record.hash in HASHES:
                        got[HASHES.index(record.hash)].add((record.offset, part.under[record]))
                self._add(part, {"ev": "deliver", "p": p, "got": tuple(map(frozenset, got))})

    def _starts(self, tp: TopicPartition, checkpoint: Checkpoint) -> Step:
        step = {"ev": "starts", "knows": 0, "at": 0, "begins": _NOWHERE, "ends": _NOWHERE, "under": 0, "sunk": False}
        if not checkpoint.wal:
            return step
        last = offset_of(checkpoint.wal[-1])
        begins, ends = self._slices(tp, last)
        step |= {"knows": self._number(last.founding), "at": last.reset}
        step |= {"begins": begins, "ends": ends, "under": self._under(tp, last)}
        return step | {"sunk": len(checkpoint.wal) - 1 in checkpoint.committed}

    @staticmethod
    def _slices(tp: TopicPartition, offset: StreamOffset) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Where each lane begins and ends in a batch; 0 without one."""
        lanes = [(lane.hashes, (lane.position, lane.until)) for lane in offset.lanes.get(tp, ())]
        found = [next((of for hashes, of in lanes if h in hashes), (0, 0)) for h in HASHES]
        return tuple(begin for begin, _ in found), tuple(end for _, end in found)

    @staticmethod
    def _under(tp: TopicPartition, offset: StreamOffset) -> int:
        return offset.leader_epochs.get(tp, -1) + 1

    # -- Kafka ---------------------------------------------------------------------------------

    def _look_at_kafka(self, part: _Part) -> None:
        """The steps of the log and of the mirror since the last look."""
        firsts = tuple(self._kafka.elected[part.tp])
        if firsts != part.firsts:
            part.firsts = firsts
            self._add(part, {"ev": "log", "firsts": firsts})
        for record in self._kafka.records[part.tp]:
            if record not in part.under:
                part.under[record] = 1 + sum(first <= record.offset for first in firsts)
        offsets = {tp: of for tp, of in self._kafka.group_offsets.items() if tp == part.tp}
        topics = self._kafka.described()
        founding = mirror.foundings(offsets).get(part.tp, "")
        extent = mirror.extents(offsets, topics).get(part.tp)
        pos = mirror.mirrored(offsets, topics).get(part.tp, 0)
        now = self._number(founding), mirror.latest_reset(offsets), extent.epoch + 1 if extent else 0, pos
        if now != part.mirror:
            part.mirror = now
            self._add(part, {"ev": self._writing(part, now[0], now[1]), "mirror": now})

    def _writing(self, part: _Part, founding: int, reset: int) -> str:
        """The action that has written this into the mirror."""
        if not founding:
            return "delete mirror"
        if reset > max(part.resets):
            return "reset mirror"
        ends, part.resetting = part.resetting, 0
        if reset and reset == ends:
            return "reset ends"
        late = part.redis["founding"] and (founding != part.redis["founding"] or reset < part.redis["reset"])
        return "mirror write" if late else "mirror"

    # -- Redis ---------------------------------------------------------------------------------

    def run(self, verb: str, keys: Sequence[str], args: Sequence[str]) -> Reply:
        """Run a script, after a look at what has happened since the last one."""
        self._now_ms = int(json.loads(args[0])["call"]["now"])
        for part in self._parts:
            self._look_at_kafka(part)
            now = self._look(part.tp)
            before, part.redis = part.redis, now
            changed = {what: value for what, value in now.items() if value != before[what]}
            if changed.keys() == {"unheard"} and not now["unheard"]:
                self._add(part, {"ev": "session ends", **changed})
            elif changed:
                self._add(part, {"ev": "loses", **changed})
        return super().run(verb, keys, args)

    def _ran(self, verb: str, keys: Sequence[str], asked: Mapping[str, Any], answer: Reply | Verdict) -> None:
        call, tps = asked["call"], partitions(keys)
        p = self._process(call["incarnation"])
        refused, beside_redis = isinstance(answer, Verdict), self._beside_redis(p, verb, call, answer)
        for part in self._parts:
            before, part.redis = part.redis, self._look(part.tp)
            changed = {what: value for what, value in part.redis.items() if value != before[what]}
            part.resets.add(part.redis["reset"])
            part.deleted |= verb == "delete" and "nonce" in changed
            if verb == "reset":
                part.resetting = changed.get("reset", 0)
            step = beside_redis
            if not isinstance(answer, Verdict):
                step = step or self._step(verb, tps, asked, answer, part.tp, changed)
            if step and not changed and (verb in ("show", "claim") or (verb == "acquire" and p in part.acquired)):
                self.repeats += 1
                continue
            part.acquired = (set() if changed else part.acquired) | ({p} if verb == "acquire" else set())
            if step:
                self._add(part, {**step, "p": p, **changed})
                continue
            self.beside[f"{verb}: {type(answer).__name__}" if refused else verb] += 1
            if changed and not part.over:
                part.over = True
                self.ends_at.append(f"{verb} {OUTSIDE}")

    def _beside_redis(self, p: str, verb: str, call: Mapping[str, str], answer: Reply | Verdict) -> Step | None:
        """What a process learns: that Redis has another group; or founding and reset epoch, which the mirror may get.

        Those that have not joined, and operators, have one name: it stands for what any of them has read.
        """
        nameless = self._processes.get("")
        if isinstance(answer, Verdict):
            if not isinstance(answer, Replaced) or p in self._ended or p == nameless:
                return None
            self._ended.add(p)
            return {"ev": "ends", "knows": self._number(call["founding"])}
        if verb != "status":
            return None
        before = self._saw.get(p, frozenset())
        saw = frozenset({(self._number(answer["founding"]), int(answer["reset"]))})
        saw |= before if p == nameless else frozenset()
        self._saw[p] = saw
        return {"ev": "mirror read", "read": saw} if saw != before else None

    def _step(
        self,
        verb: str,
        tps: list[TopicPartition],
        asked: Mapping[str, Any],
        reply: Reply,
        tp: TopicPartition,
        changed: Mapping[str, Any],
    ) -> Step | None:
        """The step of a verb; None of a verb that the model does not have."""
        given, call = asked["arguments"], asked["call"]
        i, step = tps.index(tp) if tp in tps else None, None
        match verb:
            case "create_positions" if "nonce" in changed:
                step = {"ev": "found", "knows": bool(call["founding"])}
            case "join":
                step = {"ev": verb, "m": self._member(call["member"])}
            case "claim" if i is not None:
                under, claims = given["leader_epochs"][i], self._number(call["founding"])
                under = 0 if under == "-" else int(under) + 1
                step = {"ev": verb, "under": under, "claims": claims, "at": int(given["reset"])}
            case "authorize" if i is not None and (lanes := self._owned(given["lanes"], reply["owned"], i)):
                step = {"ev": verb, "lanes": lanes}
            case "reset" if "nonce" in changed:
                to = given["places"][i]["position"] if i is not None else "-"
                step = {"ev": verb, "to": -1 if to == "-" else int(to)}
            case "delete" if "nonce" in changed:
                step = {"ev": verb}
            case "recreate" if i is not None:
                step = {"ev": "settle", "cut": int(given["places"][i]["position"])}
            case "recover" if i is not None and "nonce" in changed:
                step = self._recover(given["extents"][i], call)
            case "acquire" | "show" | "commit" if not reply.get("unread"):
                step = {"ev": verb}
        return step

    @staticmethod
    def _owned(asked: Sequence[str], owned: str, i: int) -> set[int]:
        """The lanes of one partition of a call that Redis authorised."""
        text = owned.split("\n")[i].replace("all", asked[i])
        ranges = [HashRange.parse(part.split()[0]) for part in text.split(";") if part]
        return {n for n, h in enumerate(HASHES, 1) if any(h in hashes for hashes in ranges)}

    def _recover(self, extent: Mapping[str, str], call: Mapping[str, str]) -> Step:
        proven = [(HashRange.parse(h), of) for h, _, of in (s.partition(" ") for s in extent["proven"].split(";") if s)]
        under = int(extent["text"].partition("@")[0]) + 1 if extent["text"] else 0
        lanes = tuple(int(at(proven, h) or 0) for h in HASHES)
        return {"ev": "recover", "under": under, "proven": lanes, "knows": self._number(call["founding"])}

    def _look(self, tp: TopicPartition) -> dict[str, Any]:
        """What Redis has of a partition."""
        k, together = self._keys, self._text.pipeline(transaction=True)
        together.hmget(k.meta, "founding", "nonce", "run_id", "reset_epoch", "recovering_until", "unheard")
        together.hget(k.epoch(tp.topic), str(tp.partition))
        together.hgetall(k.segments(tp))
        (founding, nonce, run_id, reset, until, unheard), epoch, segments = together.execute()
        if not nonce:
            return {**_GONE, "pos": _NOWHERE}
        members = frozenset(map(self._member, unheard.split())) if unheard else frozenset({SESSION})
        recovering = until is not None and int(until) > self._now_ms
        return {
            "founding": self._number(founding),
            "nonce": self._number(nonce),
            "run": int(run_id != "0"),
            "reset": int(reset or 0),
            "lepoch": int(epoch.partition("@")[0]) + 1 if epoch else 0,
            "unheard": members if recovering else frozenset(),
            "pos": tuple(int(at(by_hashes(segments), h) or 0) for h in HASHES),
        }

    # -- names ---------------------------------------------------------------------------------

    def _process(self, incarnation: str) -> str:
        return self._processes.setdefault(incarnation, f"p{len(self._processes) + 1}")

    def _member(self, member: str) -> str:
        return self._members.setdefault(member, f"m{len(self._members) + 1}")

    def _number(self, nonce: str) -> int:
        return self._numbers.setdefault(nonce, len(self._numbers))

    @staticmethod
    def _add(part: _Part, step: Step) -> None:
        if not part.over:
            part.steps.append(step)


def _ranked(steps: Sequence[Step]) -> list[Step]:
    """The same steps with reset epochs from 0: they are times, too large for TLC."""
    epochs = {0} | {step[what] for step in steps for what in ("reset", "at") if what in step}
    epochs |= {step["mirror"][1] for step in steps if "mirror" in step}
    epochs |= {epoch for step in steps for _, epoch in step.get("read", ())}
    rank = {epoch: n for n, epoch in enumerate(sorted(epochs))}

    def ranked(what: str, value: Any) -> Any:
        match what:
            case "reset" | "at":
                return rank[value]
            case "mirror":
                return (value[0], rank[value[1]], *value[2:])
            case "read":
                return frozenset((founding, rank[epoch]) for founding, epoch in value)
        return value

    return [{what: ranked(what, value) for what, value in step.items()} for step in steps]
