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
from mutants.changes import Begins, Change, Fails, Holds, Put, Without
from mutants.tree import broken, copied
from simulation.lease_recorder import FREE
from simulation.recorder import Step
from traced.batch import BATCH
from traced.lease import LEASE
from traced.loss import LOSS
from traced.model import Trace, Traced

MODELS = traces.MODELS.values()
ME = ("m1", 1)
STEPS: tuple[Step, ...] = (
    {"ev": "join", "p": ME},
    {"ev": "assign", "p": ME, "assigned": ("m1", "m1")},
    {"ev": "look", "p": ME, "lanes": {1, 2}},
    {"ev": "acquire", "p": ME, "lanes": {1, 2}, "owner": (("m1", 1), ("m1", 1))},
    {"ev": "plan", "p": ME, "slices": ((1, 0, 3), (0, 0, 0))},
    {"ev": "authorize", "p": ME, "lanes": {1, 2}},
    {"ev": "complete", "p": ME},
    {"ev": "commit", "p": ME, "named": (1, 0), "refused": set(), "position": (3, 0)},
    {"ev": "leave", "p": ME, "owner": (FREE, FREE)},
)
SOUND = Trace(7, 2, STEPS)

BATCH_STEPS: tuple[Step, ...] = (
    {"ev": "starts", "foreign": False, "mine": frozenset()},
    {"ev": "acquire", "mine": frozenset({1, 2})},
    {"ev": "plan", "slices": ((0, 3), (0, 2))},
    {"ev": "offset log"},
    {"ev": "authorize", "lanes": {1, 2}, "planned": False, "digest": 1},
    {"ev": "tasks", "reads": (3, 2)},
    {"ev": "attempt", "lane": 1, "end": 1},
    {"ev": "attempt", "lane": 2, "end": 2},
    {"ev": "seal", "sealed": True, "seal": (1, 2)},
    {"ev": "starts"},
    {"ev": "authorize", "lanes": {1, 2}, "planned": False},
    {"ev": "tasks", "reads": (1, 2)},
    {"ev": "silent", "lane": 1},
    {"ev": "silent", "lane": 2},
    {"ev": "sink", "ends": (1, 2)},
    {"ev": "commit log"},
    {"ev": "commit", "unread": False, "position": (1, 2)},
)
SOUND_BATCH = Trace(8, 2, BATCH_STEPS)
"""A batch that ends early, and its replay after a crash."""

EVERY, NONE = frozenset({(0, 1), (1, 1), (2, 1), (3, 1)}), frozenset[tuple[int, int]]()
LOSS_STEPS: tuple[Step, ...] = (
    {"ev": "begins", "firsts": (), "records": (EVERY | {(2, 2)}, NONE)},
    {"ev": "starts", "p": "p1", "knows": 0, "at": 0, "begins": (0, 0), "ends": (0, 0), "under": 0, "sunk": False},
    {"ev": "found", "p": "p1", "knows": False, "founding": 1, "nonce": 1, "run": 1},
    {"ev": "mirror", "mirror": (1, 0, 0, 0)},
    {"ev": "join", "p": "p1", "m": "m1"},
    {"ev": "acquire", "p": "p1"},
    {"ev": "show", "p": "p1", "lepoch": 1},
    {"ev": "plan", "p": "p1", "begins": (0, 0), "ends": (3, 3), "under": 1, "knows": 1, "at": 0},
    {"ev": "authorize", "p": "p1", "lanes": {1, 2}},
    {"ev": "deliver", "p": "p1", "got": (EVERY - {(3, 1)}, NONE)},
    {"ev": "commit", "p": "p1", "pos": (3, 3)},
    {"ev": "log", "firsts": (2,)},
    {"ev": "settle", "p": "p1", "cut": 2, "pos": (2, 2), "lepoch": 2},
    {"ev": "mirror", "mirror": (1, 0, 2, 2)},
    {"ev": "loses", "run": 0, "pos": (3, 3), "lepoch": 1},
    {
        "ev": "recover",
        "p": "p1",
        "under": 2,
        "proven": (2, 2),
        "knows": 1,
        "nonce": 2,
        "run": 1,
        "unheard": frozenset({"session"}),
    },
    {"ev": "join", "p": "p1", "m": "m1"},
    {"ev": "session ends", "unheard": frozenset()},
    {"ev": "settle", "p": "p1", "cut": 2, "pos": (2, 2), "lepoch": 2},
)
SOUND_LOSS = Trace(9, 2, LOSS_STEPS)
"""A log is cut, a member accepts it, and Redis goes back to before that."""

OPERATED = Trace(
    9,
    2,
    (
        *LOSS_STEPS[:11],
        {"ev": "mirror read", "p": "p1", "read": frozenset({(1, 0)})},
        {"ev": "reset mirror", "mirror": (1, 1, 0, 1)},
        {"ev": "reset", "p": "p2", "to": 1, "nonce": 2, "reset": 1, "pos": (1, 1)},
        {"ev": "mirror write", "mirror": (1, 0, 0, 1)},
        {"ev": "reset ends", "mirror": (1, 1, 1, 1)},
        {"ev": "delete mirror", "mirror": (0, 0, 0, 0)},
        {"ev": "delete", "p": "p2", "founding": 0, "nonce": 0, "run": 0, "reset": 0, "lepoch": 0, "pos": (0, 0)},
        {"ev": "found", "p": "p2", "knows": False, "founding": 3, "nonce": 3, "run": 1},
        {"ev": "ends", "p": "p1", "knows": 1},
        {"ev": "start", "p": "p3", "knows": 0, "at": 0, "begins": (0, 0), "ends": (0, 0), "under": 0, "sunk": False},
        {"ev": "join", "p": "p3", "m": "m3"},
    ),
)
"""An operator resets the group while a member sleeps, and deletes it; it begins anew, and the member ends."""

_LUA = "coordinator/redis/lua"
BROKEN = {
    "Lease": {
        "authorize-every-batch": Put(
            f"{_LUA}/authorize.lua:owned_of", "member == call.member and epoch == piece.left.a", "member"
        ),
        "fence-by-lane-epoch": Put(
            f"{_LUA}/commit.lua:owned_facts", "member == call.member and epoch == piece.left.a", "member == call.member"
        ),
        "lease-end": Holds(f"{_LUA}/acquire.lua:acquire", "takeable(K.leases"),
        "leave-keeps-unconfirmed": Put(f"{_LUA}/leave.lua", "not unconfirmed", "true"),
        "no-epoch-twice": Put(f"{_LUA}/acquire.lua:new_owner", "'epochs') + 1", "'epochs')"),
    },
    "Batch": {
        "first-end-wins": Put(
            "coordinator/member/inbox.py", "batch.ends.setdefault(task, ends)", "batch.ends[task] = ends"
        ),
        "replay-fixed": Put(f"{_LUA}/authorize.lua", "same and before[2]", "false"),
        "seal-before-sink": Fails("coordinator/member/service.py", "ended.whole is not None"),
    },
    "Loss": {
        "assert-beginnings": Put(
            "coordinator/progress/ownership.py:asserted",
            "lane.position) for h in missing",
            "lane.until) for h in missing",
        ),
        "leader-epoch-facts": Fails(f"{_LUA}/recover.lua:stores_extent", "less(proof"),
        "loss-of-state": Put(f"{_LUA}/show.lua", "local bad = lost()", "local bad = other_schema()"),
        "one-founding": Without(f"{_LUA}/shared/prelude.lua:lost", "'REPLACED'"),
        "recovering-session": Begins(f"{_LUA}/shared/leases.lua:recovering", "return nil"),
    },
}
"""Code that breaks a rule, so often that two dozen schedules show it, or fifty of the fast ones of `Loss`.

Mostly the first ten do.
"""

_REPLAY = """
import sys
import specs, traces
model = traces.MODELS[sys.argv[1]]
seeds = range(50 if model.name == "Loss" else 24)
for first in seeds[::10]:
    recorded = [trace for each in specs.record(model, seeds[first : first + 10]) for trace in each.traces]
    if any(specs.replay(model, group) for group in traces.by_lanes(recorded)):
        raise SystemExit(0)
raise SystemExit(1)
"""


def changed(step: int, of: Trace = SOUND, **fields: object) -> Trace:
    """The sound record with another step, which is its last."""
    return Trace(of.seed, 2, (*of.steps[:step], {**of.steps[step], **fields}))


def test_a_record_is_a_module_of_tla() -> None:
    text = traces.module(LEASE, [SOUND, SOUND])
    assert 'Processes == {P("m1", 1)}\n' in text
    assert "Lanes == 1..2\n" in text
    assert "Traces == <<Trace1, Trace2>>\n" in text
    assert '[ev |-> "acquire", p |-> P("m1", 1), lanes |-> {1, 2}, owner |-> <<O("m1", 1), O("m1", 1)>>],\n' in text
    assert '[ev |-> "plan", p |-> P("m1", 1), slices |-> <<S(1, 0, 3), Nothing>>],\n' in text
    assert '[ev |-> "commit", p |-> P("m1", 1), named |-> <<1, 0>>, refused |-> {}, position |-> <<3, 0>>],\n' in text
    assert '[ev |-> "leave", p |-> P("m1", 1), owner |-> <<Free, Free>>] >>\n' in text


def test_a_record_of_a_batch_is_a_module_of_tla() -> None:
    lost: Step = {"ev": "entry lost", "digest": "unknown", "sealed": False, "seal": (0, 0)}
    text = traces.module(BATCH, [SOUND_BATCH, Trace(9, 2, (*BATCH_STEPS, lost))])
    assert "MostBatches == 2\n" in text
    assert '[ev |-> "starts", foreign |-> FALSE, mine |-> {}],\n' in text
    assert '[ev |-> "plan", slices |-> <<<<0, 3>>, <<0, 2>>>>],\n' in text
    assert '[ev |-> "entry lost", digest |-> Unknown, sealed |-> FALSE, seal |-> <<0, 0>>] >>\n' in text


def test_a_record_of_losses_is_a_module_of_tla() -> None:
    text = traces.module(LOSS, [SOUND_LOSS])
    assert 'Processes == {"p1"}\nMostOffsets == 5\n' in text
    assert '[ev |-> "mirror", mirror |-> [founding |-> 1, reset |-> 0, lepoch |-> 2, pos |-> 2]],\n' in text
    assert '[ev |-> "deliver", p |-> "p1", got |-> <<{<<0, 1>>, <<1, 1>>, <<2, 1>>}, {}>>],\n' in text


def test_one_run_has_traces_with_as_many_lanes() -> None:
    other = Trace(8, 7, STEPS)
    assert traces.by_lanes([other, SOUND, other]) == [[SOUND], [other, other]]


def test_a_call_beside_the_model_that_changes_its_state_is_a_mistake() -> None:
    ends = ("commit is not in the model", "two drivers write the logs of one checkpoint")
    schedules = [traces.Recorded((SOUND,)), traces.Recorded((SOUND,), ends_at=ends, violation="seed 7: LOST", seed=7)]
    assert traces.mistakes(schedules) == ["seed 7: LOST", "seed 7: commit is not in the model"]


def test_the_beginning_of_a_record_is_no_action() -> None:
    assert traces.counts([SOUND_BATCH])["starts"] == 1


def test_it_finds_the_step_at_which_tlc_stopped() -> None:
    output = "State 1: <Initial predicate>\n/\\ cursor = 1\n/\\ trace = 2\n\nState 2:\n/\\ cursor = 9\n/\\ trace = 2\n"
    assert traces.stopped_at(output) == (1, 8)
    assert traces.stopped_at("Parsing or semantic analysis failed.\n") is None


@pytest.mark.parametrize("model", MODELS, ids=traces.MODELS)
def test_each_rule_of_the_model_has_a_forgery(model: Traced) -> None:
    assert {*specs.switches(model.name)} <= model.forgeries.keys()


@pytest.mark.parametrize("model", MODELS, ids=traces.MODELS)
def test_each_action_that_a_schedule_must_have_is_a_step(model: Traced) -> None:
    known = re.findall(r'now\.ev = "([a-z ]+)" ->', (specs.SPECS / f"{model.name}Trace.tla").read_text())
    assert {*model.actions} <= {*known}


def test_a_forgery_ends_where_it_breaks_the_rule() -> None:
    forged = traces.forgery(LEASE, "fresh-positions", [SOUND])
    assert forged is not None
    assert forged.steps == changed(4, slices=((1, 1, 4), (0, 0, 0))).steps
    assert traces.forgery(LEASE, "release-to-a-waiting-owner", [SOUND]) is None


@pytest.fixture(scope="module")
def tlc() -> None:
    """TLC is there."""
    specs.fetch()


@pytest.mark.long
@pytest.mark.usefixtures("tlc")
@pytest.mark.parametrize(
    ("model", "sound"), [(LEASE, SOUND), (BATCH, SOUND_BATCH), (LOSS, SOUND_LOSS)], ids=["Lease", "Batch", "Loss"]
)
def test_a_sound_record_is_replayed(model: Traced, sound: Trace) -> None:
    assert specs.replay(model, [sound]) is None


@pytest.mark.long
@pytest.mark.usefixtures("tlc")
def test_a_step_that_tlc_cannot_read_is_no_rejection() -> None:
    without = {name: value for name, value in STEPS[3].items() if name != "lanes"}
    with pytest.raises(RuntimeError, match="no verdict"):
        specs.replay(LEASE, [Trace(7, 2, (*STEPS[:3], without, *STEPS[4:]))])


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
        pytest.param(changed(7, named=(2, 0)), id="a commit names another lane epoch and is not refused"),
        pytest.param(changed(7, position=(3, 3)), id="a position moves without a slice"),
        pytest.param(changed(8, p=("m1", 2)), id="a process leaves that never joined"),
    ],
)
def test_a_record_with_a_false_step_is_rejected_there(trace: Trace) -> None:
    stop = specs.replay(LEASE, [SOUND, trace])
    assert stop is not None
    assert (stop.trace, stop.step) == (trace, len(trace.steps) - 1)


@pytest.mark.long
@pytest.mark.usefixtures("tlc")
@pytest.mark.parametrize(
    "trace",
    [
        pytest.param(changed(4, SOUND_BATCH, lanes={1}), id="a lane that is owned is left out"),
        pytest.param(changed(5, SOUND_BATCH, reads=(2, 2)), id="a task reads less than planned"),
        pytest.param(changed(7, SOUND_BATCH, end=3), id="a task ends behind its plan"),
        pytest.param(changed(8, SOUND_BATCH, seal=(2, 2)), id="a seal names another end"),
        pytest.param(changed(11, SOUND_BATCH, reads=(3, 2)), id="a replay reads beyond the seal"),
        pytest.param(changed(14, SOUND_BATCH, ends=(2, 2)), id="the sink gets more than the tasks reported"),
        pytest.param(changed(16, SOUND_BATCH, position=(2, 2)), id="a commit moves a position beyond the true end"),
    ],
)
def test_a_batch_with_a_false_step_is_rejected_there(trace: Trace) -> None:
    stop = specs.replay(BATCH, [SOUND_BATCH, trace])
    assert stop is not None
    assert (stop.trace, stop.step) == (trace, len(trace.steps) - 1)


@pytest.mark.long
@pytest.mark.usefixtures("tlc")
@pytest.mark.parametrize(
    "trace",
    [
        pytest.param(changed(6, SOUND_LOSS, ev="settle", cut=0, lepoch=1, pos=(1, 0)), id="a settled position rises"),
        pytest.param(changed(7, SOUND_LOSS, under=2), id="a plan has a leader epoch that Redis does not have"),
        pytest.param(changed(10, SOUND_LOSS, pos=(4, 3)), id="a commit goes beyond the batch"),
        pytest.param(changed(12, SOUND_LOSS, ev="show", pos=(3, 3)), id="a newer leader epoch hides the cut"),
        pytest.param(changed(12, SOUND_LOSS, cut=3, pos=(3, 3)), id="the cut is not where the older leader epoch ends"),
        pytest.param(changed(13, SOUND_LOSS, mirror=(1, 0, 2, 3)), id="the mirror is above a new record"),
        pytest.param(changed(15, SOUND_LOSS, lepoch=2), id="a recovery hides the cut"),
        pytest.param(changed(15, SOUND_LOSS, pos=(2, 2)), id="a recovery takes a position back"),
        pytest.param(changed(15, SOUND_LOSS, unheard=frozenset()), id="a recovery waits for nobody"),
        pytest.param(changed(11, OPERATED, read=frozenset({(1, 1)})), id="a process has read another reset epoch"),
        pytest.param(changed(12, OPERATED, mirror=(2, 1, 0, 1)), id="an operator writes the mirror of another group"),
        pytest.param(changed(13, OPERATED, reset=2), id="a reset without its mirror"),
        pytest.param(changed(13, OPERATED, pos=(1, 2)), id="a reset to two offsets"),
        pytest.param(changed(14, OPERATED, ev="mirror"), id="a mirror of before the reset, read after it"),
        pytest.param(
            changed(16, OPERATED, ev="delete", founding=0, nonce=0), id="a group is deleted before its mirror"
        ),
        pytest.param(changed(18, OPERATED, knows=True), id="a process that knows a group creates another"),
        pytest.param(changed(19, OPERATED, ev="join", m="m1"), id="a process goes on in another group"),
        pytest.param(changed(19, OPERATED, knows=3), id="a process ends in its own group"),
    ],
)
def test_a_loss_with_a_false_step_is_rejected_there(trace: Trace) -> None:
    stop = specs.replay(LOSS, [OPERATED, trace])
    assert stop is not None
    assert (stop.trace, stop.step) == (trace, len(trace.steps) - 1)


@pytest.mark.long
@pytest.mark.server
@pytest.mark.timeout(1800)  # a minute of one core, on a busy machine
@pytest.mark.usefixtures("tlc")
@pytest.mark.parametrize("model", MODELS, ids=traces.MODELS)
def test_fifty_schedules_are_of_the_model_and_their_forgeries_are_not(model: Traced) -> None:
    assert list(specs.check_traces(model, range(50))) == []


@pytest.mark.long
@pytest.mark.server
@pytest.mark.usefixtures("tlc")
@pytest.mark.parametrize(
    ("model", "change"),
    [pytest.param(model, change, id=rule) for model, of in BROKEN.items() for rule, change in of.items()],
)
def test_schedules_of_code_that_breaks_a_rule_are_rejected(tmp_path: Path, model: str, change: Change) -> None:
    tree = copied(ROOT, tmp_path)
    path = os.pathsep.join(map(str, (tree, tree / "scripts" / "lib")))
    with broken(tree, change):
        subprocess.run(
            [sys.executable, "-B", "-c", _REPLAY, model], cwd=tree, env={**os.environ, "PYTHONPATH": path}, check=True
        )
