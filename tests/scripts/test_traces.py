"""Recorded schedules of the simulation are steps of the model; forged ones are not, nor those of broken code."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import specs
import traces
from broker_jars import ROOT
from mutants.changes import Change, Holds, Put
from mutants.tree import broken, copied
from simulation.recorder import FREE, Step
from traces import Trace

ME = ("m1", 1)
STEPS: tuple[Step, ...] = (
    {"ev": "join", "p": ME},
    {"ev": "assign", "p": ME, "assigned": ("m1", "m1")},
    {"ev": "look", "p": ME, "lanes": {1, 2}},
    {"ev": "acquire", "p": ME, "lanes": {1, 2}, "owner": (("m1", 1), ("m1", 1))},
    {"ev": "plan", "p": ME, "slices": ((1, 0, 3), (0, 0, 0))},
    {"ev": "authorize", "p": ME, "lanes": {1, 2}},
    {"ev": "complete", "p": ME},
    {"ev": "commit", "p": ME, "refused": set(), "position": (3, 0)},
    {"ev": "leave", "p": ME, "owner": (FREE, FREE)},
)
SOUND = Trace(7, 2, STEPS)

_LUA = "coordinator/redis/lua"
BROKEN = {
    "authorize-every-batch": Put(
        f"{_LUA}/authorize.lua:owned_of", "member == call.member and epoch == piece.left.a", "member"
    ),
    "lease-end": Holds(f"{_LUA}/acquire.lua:acquire", "takeable(K.leases"),
    "leave-keeps-unconfirmed": Put(f"{_LUA}/leave.lua", "not unconfirmed", "true"),
    "no-epoch-twice": Put(f"{_LUA}/acquire.lua:new_owner", "'epochs') + 1", "'epochs')"),
}
"""Code that breaks a rule, so often that a dozen schedules show it."""

_REPLAY = """
import specs, traces
stops = [specs.replay(group) for group in traces.by_lanes(specs.record(range(12)))]
raise SystemExit(not any(stops))
"""


def changed(step: int, **fields: object) -> Trace:
    """The sound record with another step, which is its last."""
    return Trace(7, 2, (*STEPS[:step], {**STEPS[step], **fields}))


def test_a_record_is_a_module_of_tla() -> None:
    text = traces.module([SOUND, SOUND])
    assert 'Processes == {P("m1", 1)}\n' in text
    assert "Lanes == 1..2\n" in text
    assert "Traces == <<Trace1, Trace2>>\n" in text
    assert '[ev |-> "acquire", p |-> P("m1", 1), lanes |-> {1, 2}, owner |-> <<O("m1", 1), O("m1", 1)>>],\n' in text
    assert '[ev |-> "plan", p |-> P("m1", 1), slices |-> <<S(1, 0, 3), Nothing>>],\n' in text
    assert '[ev |-> "commit", p |-> P("m1", 1), refused |-> {}, position |-> <<3, 0>>],\n' in text
    assert '[ev |-> "leave", p |-> P("m1", 1), owner |-> <<Free, Free>>] >>\n' in text


def test_one_run_has_traces_with_as_many_lanes() -> None:
    other = Trace(8, 7, STEPS)
    assert traces.by_lanes([other, SOUND, other]) == [[SOUND], [other, other]]


def test_it_finds_the_step_at_which_tlc_stopped() -> None:
    output = "State 1: <Initial predicate>\n/\\ cursor = 1\n/\\ trace = 2\n\nState 2:\n/\\ cursor = 9\n/\\ trace = 2\n"
    assert traces.stopped_at(output) == (1, 8)
    assert traces.stopped_at("Parsing or semantic analysis failed.\n") is None


def test_each_rule_of_the_model_has_a_forgery() -> None:
    assert {*specs.switches("Lease")} <= traces.FORGERIES.keys()


def test_each_action_that_a_schedule_must_have_is_a_step() -> None:
    known = re.findall(r'now\.ev = "([a-z ]+)" ->', (specs.SPECS / "LeaseTrace.tla").read_text())
    assert {*traces.ACTIONS} <= {*known}


def test_a_forgery_ends_where_it_breaks_the_rule() -> None:
    forged = traces.forgery("fresh-positions", [SOUND])
    assert forged is not None
    assert forged.steps == changed(4, slices=((1, 1, 4), (0, 0, 0))).steps
    assert traces.forgery("release-to-a-waiting-owner", [SOUND]) is None


@pytest.fixture(scope="module")
def tlc() -> None:
    """TLC is there."""
    specs.fetch()


@pytest.mark.long
@pytest.mark.usefixtures("tlc")
def test_a_sound_record_is_replayed() -> None:
    assert specs.replay([SOUND]) is None


@pytest.mark.long
@pytest.mark.usefixtures("tlc")
@pytest.mark.parametrize(
    "trace",
    [
        pytest.param(changed(3, owner=(("m1", 1), FREE)), id="a lane that is wanted and free is not acquired"),
        pytest.param(changed(3, owner=(("m1", 2), ("m1", 2))), id="a lane epoch is left out"),
        pytest.param(changed(3, lanes={1}), id="a lane is acquired that was not wanted"),
        pytest.param(changed(4, slices=((2, 0, 3), (0, 0, 0))), id="a plan has another lane epoch"),
        pytest.param(changed(5, lanes={2}), id="a lane that is owned is left out"),
        pytest.param(changed(7, position=(3, 3)), id="a position moves without a slice"),
        pytest.param(changed(8, p=("m1", 2)), id="a process leaves that never joined"),
    ],
)
def test_a_record_with_a_false_step_is_rejected_there(trace: Trace) -> None:
    stop = specs.replay([SOUND, trace])
    assert stop is not None
    assert (stop.trace, stop.step) == (trace, len(trace.steps) - 1)


@pytest.mark.long
@pytest.mark.server
@pytest.mark.timeout(1800)  # a minute of one core, on a busy machine
@pytest.mark.usefixtures("tlc")
def test_fifty_schedules_are_of_the_model_and_their_forgeries_are_not() -> None:
    assert list(specs.check_traces(range(50))) == []


@pytest.mark.long
@pytest.mark.server
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("tlc")
@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_schedules_of_code_that_breaks_a_rule_are_rejected(tmp_path: Path, change: Change) -> None:
    tree = copied(ROOT, tmp_path)
    path = os.pathsep.join(map(str, (tree, tree / "scripts" / "lib")))
    with broken(tree, change):
        subprocess.run(
            [sys.executable, "-B", "-c", _REPLAY], cwd=tree, env={**os.environ, "PYTHONPATH": path}, check=True
        )
