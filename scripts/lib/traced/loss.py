"""Records for `specs/LossTrace.tla`: each partition of a schedule by itself, with all processes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from simulation.loss_recorder import LossRecorder
from simulation.recorder import Step
from traced.model import Forged, Trace, Traced, tla

_ACTIONS = (
    *("found", "join", "session ends", "plan", "deliver", "commit", "settle", "mirror", "recover", "loses", "log"),
    *("start", "ends", "reset mirror", "reset", "reset ends", "delete", "mirror read", "mirror write"),
    *("starts", "claim", "acquire", "authorize", "show", "delete mirror"),
)
_STATE = ("founding", "nonce", "run", "reset", "lepoch", "unheard", "pos")


def _constants(traces: Sequence[Trace]) -> list[str]:
    steps = [step for trace in traces for step in trace.steps]
    processes = sorted({step["p"] for step in steps if "p" in step})
    offsets = [o for step in steps for what in ("pos", "ends", "firsts") for o in step.get(what, ())]
    offsets += [record[0] for step in steps for of_lane in step.get("records", ()) for record in of_lane]
    return [
        f"Processes == {tla(frozenset(processes))}",
        f"MostOffsets == {max(offsets, default=0) + 2}",
        "NoFaults == 0",
    ]


def _mirror(entry: tuple[int, int, int, int]) -> str:
    founding, reset, lepoch, pos = entry
    return f"[founding |-> {founding}, reset |-> {_signed(reset)}, lepoch |-> {lepoch}, pos |-> {pos}]"


def _signed(number: int) -> str:
    """Naturals has no sign."""
    return str(number) if number >= 0 else f"0 - {-number}"


@dataclass(slots=True)
class Before:
    """What a record has shown before a step."""

    lanes: int
    redis: dict[str, Any]
    mirror: tuple[int, int, int, int] = (0, 0, 0, 0)
    ends: dict[str, tuple[int, ...]] = field(default_factory=dict)  # of the last plan of each process
    sunk: set[str] = field(default_factory=set)  # processes whose last plan is in the sink
    joined: dict[str, int] = field(default_factory=dict)  # the nonce at which each process joined

    @classmethod
    def first(cls, lanes: int) -> "Before":
        """Before the first step."""
        return cls(lanes, {**dict.fromkeys(_STATE, 0), "unheard": frozenset(), "pos": (0,) * lanes})

    def after(self, step: Step) -> None:
        """Take a step into account."""
        self.redis |= {what: step[what] for what in _STATE if what in step}
        match step:
            case {"mirror": entry}:
                self.mirror = entry
            case {"ev": "plan", "p": p, "ends": ends}:
                self.ends[p] = ends
                self.sunk.discard(p)
            case {"ev": "deliver", "p": p}:
                self.sunk.add(p)
            case {"ev": "join", "p": p}:
                self.joined[p] = self.redis["nonce"]

    @property
    def answers(self) -> bool:
        """Whether Redis answers with a group that it did not lose."""
        return bool(self.redis["nonce"] and self.redis["run"])

    def claim(self, **fields: object) -> Step:
        """A claim of this group, with its leader epoch."""
        of = {"under": self.redis["lepoch"], "claims": self.redis["founding"], "at": self.redis["reset"]}
        return {"ev": "claim", **of, **fields}


def _assert_beginnings(step: Step, before: Before) -> Forged:
    if step["ev"] != "authorize" or not before.answers:
        return None
    now, ends = before.redis["pos"], before.ends.get(step["p"], before.redis["pos"])
    ahead = tuple(
        max(at, end) if n in step["lanes"] else at for n, (at, end) in enumerate(zip(now, ends, strict=True), 1)
    )
    return [step, before.claim(pos=ahead)] if ahead != now else None


def _create_once(step: Step, before: Before) -> Forged:
    if step["ev"] != "loses" or step.get("nonce") != 0 or not before.mirror[0]:
        return None
    new = before.redis["nonce"] + 100
    zeros = (0,) * before.lanes
    return [step, {"ev": "found", "knows": False, "founding": new, "nonce": new, "run": 1, "pos": zeros}]


def _leader_epoch_facts(step: Step, before: Before) -> Forged:
    """A fact of the log before a cut."""
    was = before.redis
    if step["ev"] != "settle" or "pos" not in step or step.get("lepoch", 0) <= was["lepoch"] or not was["lepoch"]:
        return None
    return [step, before.claim(pos=was["pos"])]


def _loss_of_state(step: Step, before: Before) -> Forged:
    if step["ev"] != "loses" or not step.get("nonce", before.redis["nonce"]) or step.get("run", 1):
        return None
    nonce = step.get("nonce", before.redis["nonce"])
    joined = sorted(p for p, at in before.joined.items() if at == nonce)
    return [step, {"ev": "acquire", "p": joined[0]}] if joined and before.answers else None


def _recovering_session(step: Step, before: Before) -> Forged:
    waits = step.get("unheard", before.redis["unheard"])
    return [step, {"ev": "acquire", "p": step["p"]}] if step["ev"] == "join" and waits else None


def _recover_by_proof(step: Step, before: Before) -> Forged:
    if step["ev"] != "recover":
        return None
    now = step.get("pos", before.redis["pos"])
    return [{**step, "pos": (1 + max(*now, before.mirror[3], *map(max, before.ends.values())), *now[1:])}]


def _one_founding(step: Step, before: Before) -> Forged:
    return [{**step, "claims": step["claims"] + 100}] if step["ev"] == "claim" and "pos" in step else None


def _reset_epoch(step: Step, before: Before) -> Forged:
    """A fact of before the reset, as if it were of the new epoch."""
    if step["ev"] != "reset":
        return None
    first, *others = step.get("pos", before.redis["pos"])
    return [step, before.claim(at=step["reset"], pos=(first + 1, *others))]


def _mirror_after_reset(step: Step, before: Before) -> Forged:
    """An entry of before the reset, by a process that has read Redis after it."""
    if step["ev"] != "reset":
        return None
    entry = before.redis["founding"], before.redis["reset"], 0, before.redis["pos"][0]
    return [step, {"ev": "mirror", "mirror": entry}]


_FORGERIES: Mapping[str, Callable[[Step, Before], Forged]] = {
    "assert-beginnings": _assert_beginnings,
    "create-once": _create_once,
    "leader-epoch-facts": _leader_epoch_facts,
    "loss-of-state": _loss_of_state,
    "mirror-after-reset": _mirror_after_reset,
    "one-founding": _one_founding,
    "recover-by-proof": _recover_by_proof,
    "recovering-session": _recovering_session,
    "reset-epoch": _reset_epoch,
}

_FORMS: Mapping[str, Callable[[Any], str]] = {"mirror": _mirror, "to": _signed}

LOSS = Traced("Loss", LossRecorder, _ACTIONS, _constants, _FORMS, Before.first, _FORGERIES)
