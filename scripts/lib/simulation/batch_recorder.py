"""Records a schedule as steps of `specs/BatchTrace.tla`, of each application by itself.

    application   a checkpoint with all its lives; what others do shows as lanes that it loses and positions that rise
    batch         its number in the offset log, from 1

Spark and the sink tell what Redis does not see. A record ends where the sink skipped a batch that nobody has read.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import redis

from coordinator.progress.ends import Ends
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.client import RedisClient
from coordinator.redis.keys import GroupKeys
from coordinator.redis.replies import Caller
from coordinator.redis.verb import Reply
from coordinator.values.ranges import HashRange
from coordinator.values.subscription import TopicPartition
from coordinator.values.verdicts import Verdict
from simulation.checkpoint import Checkpoint
from simulation.kafka import SimulatedKafka
from simulation.recorder import Recorder, Step, at, by_hashes, partitions

UNKNOWN = "unknown"
"""In place of a digest: Redis lost the entry of the member."""

Slices = tuple[tuple[int, int], ...]
"""Of each lane: the first offset, and the one after the last; twice 0 without a slice."""

_OF_THE_BATCH = ("digest", "sealed", "seal")


@dataclass(slots=True)
class _Application:
    member: str
    last: dict[str, Any]  # what Redis had after its last step
    steps: list[Step]
    incarnation: str = ""  # of its latest life
    batches: list[Slices] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)  # digest -> number of the batch
    as_planned: bool = False  # its last batch is sealed at its planned ends
    ended: dict[int, int] = field(default_factory=dict)  # lane -> end of its attempt
    known: tuple[int, ...] = ()  # positions at its last acquisition
    over: bool = False


class BatchRecorder(Recorder):
    """The steps of one schedule."""

    def __init__(self, client: RedisClient, text: redis.Redis, keys: GroupKeys, kafka: SimulatedKafka) -> None:
        super().__init__(client, text, keys, kafka)
        self._applications: dict[str, _Application] = {}  # by the names of their checkpoints
        self._lives: dict[str, _Application] = {}  # by incarnation

    @property
    def records(self) -> Sequence[Sequence[Step]]:
        """One of each application that has planned a batch."""
        return [each.steps for each in self._applications.values() if each.batches]

    # -- Spark and the sink --------------------------------------------------------------------

    def noted(self, what: str, caller: Caller, fact: Any) -> None:
        """A step of Spark or the sink."""
        if what == "starts":
            self._starts(caller, fact)
        app = self._of(caller.member, caller.incarnation)
        if app is None:
            return
        match what:
            case "offset log":
                self._planned(app, fact)
            case "tasks":
                reads = {n: s.offsets.until for of_task in fact for s in of_task for n in self._lanes_of(s)}
                app.steps.append({"ev": what, "reads": self._offsets(reads)})
            case "a task ends" if not app.as_planned:  # the first end counts from now on
                self._attempt(app, {n: e for n, e in self._ends(app, *fact).items() if n not in app.ended})
            case "a task ended":
                self._attempt(app, self._ends(app, *fact))
            case "a silent task ended":
                app.steps += ({"ev": "silent", "lane": n} for s in fact[0] for n in sorted(self._lanes_of(s)))
            case "sink":
                ends = {n: end for of_task in fact for n, end in self._ends(app, *of_task).items()}
                app.steps.append({"ev": what, "ends": tuple(ends.get(n + 1, 0) for n in range(len(self.lanes)))})
            case "skips" | "commit log":
                app.steps.append({"ev": what})

    def _starts(self, caller: Caller, checkpoint: Checkpoint) -> None:
        app = self._applications.get(checkpoint.name)
        if app is None or not app.batches:
            first: Step = {"ev": "starts", "foreign": checkpoint.taken > 0, "mine": frozenset()}
            app = _Application(caller.member, self._nothing(), [first])
            self._applications[checkpoint.name] = app
        elif not app.over:
            app.steps.append({"ev": "starts"})
        app.incarnation = caller.incarnation
        self._lives[caller.incarnation] = app

    def _nothing(self) -> dict[str, Any]:
        zeros = (0,) * len(self.lanes)
        return {"position": zeros, "mine": frozenset(), "digest": 0, "sealed": False, "seal": zeros}

    def _of(self, member: str, incarnation: str) -> _Application | None:
        """The application of a process; None if its record is over, or another life began."""
        app = self._lives.get(incarnation)
        if app is None or app.over or app.incarnation != incarnation:
            return None
        app.member = member or app.member
        return app

    def _planned(self, app: _Application, end: StreamOffset) -> None:
        slices = [(0, 0)] * len(self.lanes)
        for n, (tp, key_hash) in enumerate(self.lanes):
            for lane in end.lanes.get(tp, ()):
                if key_hash in lane.hashes and lane.offsets:
                    slices[n] = self._relative(n, lane.position), self._relative(n, lane.until)
        app.batches.append(tuple(slices))
        app.numbers[end.digest] = len(app.batches)
        app.ended = {}
        app.steps += {"ev": "plan", "slices": app.batches[-1]}, {"ev": "offset log"}

    def _attempt(self, app: _Application, ends: Mapping[int, int]) -> None:
        news = {n: end for n, end in ends.items() if app.ended.get(n) != end}
        app.ended.update(news)
        app.steps += ({"ev": "attempt", "lane": n, "end": end} for n, end in sorted(news.items()))

    def _ends(self, app: _Application, slices: Iterable[Slice], ends: Ends) -> dict[int, int]:
        """The end of each lane of these slices: an early one, or the planned one."""
        found = {}
        for s in slices:
            for n in self._lanes_of(s):
                early = next(
                    (e for hashes, e in ends.get(s.topic_partition, ()) if self.lanes[n - 1][1] in hashes), None
                )
                until = s.offsets.until if early is None else min(early, s.offsets.until)
                found[n] = max(self._relative(n - 1, until), app.batches[-1][n - 1][0])
        return found

    def _lanes_of(self, s: Slice) -> set[int]:
        return self._in({s.topic_partition: [s.hashes]})

    def _offsets(self, offsets: Mapping[int, int]) -> tuple[int, ...]:
        return tuple(self._relative(n, offsets[n + 1]) if n + 1 in offsets else 0 for n in range(len(self.lanes)))

    # -- Redis ---------------------------------------------------------------------------------

    def _ran(self, verb: str, keys: Sequence[str], asked: Mapping[str, Any], answer: Reply | Verdict) -> None:
        call, refused = asked["call"], isinstance(answer, Verdict)
        caller = self._of(call["member"], call["incarnation"])
        step = None if isinstance(answer, Verdict) else self._step(verb, partitions(keys), asked["arguments"], answer)
        if caller is None or step is None:
            self.beside[f"{verb}: {type(answer).__name__}" if refused else verb] += 1
        if caller and step and verb == "authorize":
            caller.as_planned = step["planned"]
        for app, now in self._look():
            changed = {what: value for what, value in now.items() if value != app.last[what]}
            app.last = now
            own = step if app is caller else None
            if changed.get("digest") == UNKNOWN and verb != "authorize":
                app.steps.append({"ev": "entry lost", **{what: now[what] for what in _OF_THE_BATCH}})
                changed = {what: value for what, value in changed.items() if what not in _OF_THE_BATCH}
            if own and own["ev"] == "acquire" and not changed and app.known == now["position"]:
                self.repeats += 1
            elif own or changed:
                app.steps.append({**(own or {"ev": "others"}), **changed})
            if own and own["ev"] in ("acquire", "commit"):
                app.known = now["position"]
            app.over = bool(own and own.get("unread"))
            if app.over:
                self.ends_at.append("a sink skipped a batch that nobody has read")

    def _step(self, verb: str, tps: list[TopicPartition], given: Mapping[str, Any], reply: Reply) -> Step | None:
        """The step of a verb; None of a verb that the model does not have."""
        match verb:
            case "authorize":
                lanes = self._authorized(tps, given["lanes"], reply["owned"])
                return {"ev": verb, "lanes": lanes, "planned": bool(reply["planned"])}
            case "abandon":
                return {"ev": verb, "lanes": self._within(tps, given["ranges"])}
            case "commit":
                return {"ev": verb, "unread": bool(reply["unread"])}
            case "acquire" | "seal" | "claim" | "leave":
                return {"ev": verb}
        return None

    def _look(self) -> list[tuple[_Application, dict[str, Any]]]:
        """What Redis has of each application."""
        k, together = self._keys, self._text.pipeline(transaction=True)
        apps = [app for app in self._applications.values() if not app.over]
        for of_tp in [of(tp) for tp in self._tps for of in (k.owners, k.segments)]:
            together.hgetall(of_tp)
        for app in apps:
            together.hmget(k.member(app.member), "incarnation", "authorized", "seal")
            together.zscore(k.leases, app.member)
        found = together.execute()
        of_tps, of_apps = found[: 2 * len(self._tps)], found[2 * len(self._tps) :]
        owners = {tp: by_hashes(fields) for tp, fields in zip(self._tps, of_tps[::2], strict=True)}
        segments = {tp: by_hashes(fields) for tp, fields in zip(self._tps, of_tps[1::2], strict=True)}
        position = tuple(self._position(n, segments[tp]) for n, (tp, _) in enumerate(self.lanes))
        owner = [at(owners[tp], key_hash).rpartition(" ")[2] for tp, key_hash in self.lanes]
        looks = []
        for app, (incarnation, digest, seal), lease in zip(apps, of_apps[::2], of_apps[1::2], strict=True):
            mine = frozenset(n for n, member in enumerate(owner, 1) if member and member == app.member)
            lost = incarnation is None and lease is not None and bool(app.batches)
            number = app.numbers.get(digest or "", 0)  # none of "none" and "unknown"
            known = UNKNOWN if lost or digest == UNKNOWN else number
            sealed = seal is not None and number > 0
            ends = self._sealed(app.batches[number - 1], seal) if sealed else (0,) * len(self.lanes)
            state = {"position": position, "mine": mine, "digest": known, "sealed": sealed, "seal": ends}
            looks.append((app, state))
        return looks

    def _sealed(self, planned: Slices, seal: str) -> tuple[int, ...]:
        """The end of each lane: the lowest early one that a seal names, or the planned one."""
        ends = [until for _, until in planned]
        for topic, partition, hashes, offset in (part.split(" ") for part in seal.split(";") if part):
            for n in self._in({TopicPartition(topic, int(partition)): [HashRange.parse(hashes)]}):
                ends[n - 1] = max(planned[n - 1][0], min(ends[n - 1], self._relative(n - 1, int(offset))))
        return tuple(ends)
