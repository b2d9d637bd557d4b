"""Recorded schedules as modules of TLA+, for the replays in `specs/`; and forgeries of them, one for each rule.

The schedules run the real coordinator (`simulation`), of the kinds that the model has. A record becomes a tuple of
TLA+. A forgery is the beginning of a record whose last step breaks a rule: if TLC goes on, it does not check that rule.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from simulation.recorder import OUTSIDE, Step
from simulation.schedules import Schedule
from simulation.sink import Violation
from simulation.world import Valkey
from traced.batch import BATCH
from traced.lease import LEASE
from traced.loss import LOSS
from traced.model import Trace, Traced, tla

MODELS: Mapping[str, Traced] = {model.name: model for model in (LEASE, BATCH, LOSS)}
"""The models that have a replay."""

_AT = re.compile(r"^/\\ (trace|cursor) = (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a schedule left."""

    traces: tuple[Trace, ...]
    repeats: int = 0  # steps that are left out
    ends_at: tuple[str, ...] = ()  # why records end before the schedule
    beside: Mapping[str, int] = field(default_factory=dict)  # what is no step
    violation: str = ""  # the broken promise that the simulation found itself
    seed: int = 0


def record(valkey: Valkey, model: Traced, seed: int) -> Recorded:
    """Run a schedule of the kinds that the model has, and record it."""
    schedule = Schedule(valkey, seed, modelled=model.name)
    world, violation = schedule.world, ""
    recorder = model.recorder(world.server.client, valkey.text, world.server.keys, world.kafka)
    world.server.client, world.noted = recorder, recorder.noted
    try:
        schedule.run()
    except Violation as broken:
        violation = f"seed {seed}: {broken}"
    finally:
        world.close()
    traces = tuple(Trace(seed, len(recorder.lanes), tuple(steps)) for steps in recorder.records)
    return Recorded(traces, recorder.repeats, tuple(recorder.ends_at), recorder.beside, violation, seed)


def mistakes(schedules: Iterable[Recorded]) -> list[str]:
    """What is wrong before any replay: a broken promise, or a call that no model has and that changes what it has."""
    found = [each.violation for each in schedules if each.violation]
    return found + [f"seed {s.seed}: {why}" for s in schedules for why in s.ends_at if why.endswith(OUTSIDE)]


def counts(traces: Iterable[Trace]) -> Counter[str]:
    """How often each action happened. The first step of a record is its beginning, and no action."""
    return Counter(step["ev"] for trace in traces for step in trace.steps[1:])


# -- TLA+ --------------------------------------------------------------------------------------


def by_lanes(traces: Iterable[Trace]) -> list[list[Trace]]:
    """The traces that one run of TLC can check: it has one set of lanes."""
    found = defaultdict[int, list[Trace]](list)
    for trace in traces:
        found[trace.lanes].append(trace)
    return [found[lanes] for lanes in sorted(found)]


def module(model: Traced, traces: Sequence[Trace]) -> str:
    """The text of `Recorded.tla`, for traces with as many lanes each."""
    steps = [",\n".join(f"  {_record(model, step)}" for step in trace.steps) for trace in traces]
    of_traces = [f"Trace{n} == <<\n{text} >>\n" for n, text in enumerate(steps, 1)]
    return "\n".join(
        [
            "---- MODULE Recorded ----",
            f"EXTENDS {model.name}",
            *model.constants(traces),
            f"Lanes == 1..{traces[0].lanes}",
            *of_traces,
            f"Traces == <<{', '.join(f'Trace{n}' for n in range(1, len(traces) + 1))}>>",
            "====",
            "",
        ]
    )


def _record(model: Traced, step: Step) -> str:
    return f"[{', '.join(f'{name} |-> {model.forms.get(name, tla)(value)}' for name, value in step.items())}]"


def stopped_at(output: str) -> tuple[int, int] | None:
    """The number of the trace and of the step in the last state that TLC shows, both from 0; None if it shows none."""
    last = dict(_AT.findall(output))
    return (int(last["trace"]) - 1, int(last["cursor"]) - 1) if len(last) == len(("trace", "cursor")) else None


# -- forgeries ---------------------------------------------------------------------------------


def forgery(model: Traced, rule: str, traces: Iterable[Trace]) -> Trace | None:
    """The shortest forgery that breaks a rule; None if no record gives an occasion."""
    found = [forged for trace in traces if (forged := _forged(model, rule, trace))]
    return min(found, key=lambda trace: len(trace.steps), default=None)


def _forged(model: Traced, rule: str, trace: Trace) -> Trace | None:
    before = model.before(trace.lanes)
    for n, step in enumerate(trace.steps):
        if last := model.forgeries[rule](step, before):
            return Trace(trace.seed, trace.lanes, (*trace.steps[:n], *last))
        before.after(step)
    return None
