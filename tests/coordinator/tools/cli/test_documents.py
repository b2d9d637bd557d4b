"""The JSON of each verb has every field of docs/command.md, with its type, and no other."""

import json
import re
from dataclasses import asdict

import pytest

from broker_jars import ROOT
from coordinator.plan.poison import Strike
from coordinator.progress.failing import FailingRecord
from coordinator.redis.group_state import GroupEvent, GroupState
from coordinator.redis.lane_lines import CostKind, LaneLine
from coordinator.tools.audit.report import Audit, Fault, PartitionAudit
from coordinator.tools.cli import documents
from coordinator.tools.fields import Inclusive, columns_of
from coordinator.tools.moving.exporting import Exported
from coordinator.tools.moving.importing import Import, Place
from coordinator.tools.operations.copies import GroupCopy
from coordinator.tools.operations.gaps import Gap, PartitionGaps
from coordinator.tools.operations.group_health import CheckStatus, Health
from coordinator.tools.operations.group_list import GroupLine
from coordinator.tools.operations.key_owner import KeyOwner
from coordinator.tools.operations.operations import Executed, Remains, Reset
from coordinator.tools.operations.redrive_view import LateKey, RedriveView
from coordinator.tools.operations.reset_plan import PartitionReset
from coordinator.tools.operations.top_view import LaneAtWork, MemberActivity, TopView
from coordinator.tools.operations.views import GroupView, GrowthView, LaneView, MemberView, PartitionView, SlicesView
from coordinator.tools.operations.waiting_views import EventView, FailingKey, StrikeView
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import TopicPartition
from json_documents import TABLES, check_output, leaves
from pages.json_part import DOCUMENTS as PAGE

TP = TopicPartition("orders", 0)
LINE = LaneAtWork.of("m-1", LaneLine(TP, WHOLE, 5, 9, 12, True, 3.5, 100.0, CostKind.SURE, 9, "budget"))
STRIKE = Strike(TP, WHOLE, OffsetRange(5, 6), 2, 1_000, "m-0", parked=True)
FAILING = FailingRecord(TP, 6, 6, 5, 2_000, True, "ShopError", "closed")
LANE = LaneView(str(WHOLE), 5, 45, "aa.1", "m-1")
SLICES = SlicesView((Inclusive(5, 9),), "aa.1", "m-1", 1.5)
GROUP = documents.of_group(
    GroupView(
        group="g",
        state="Stable",
        generation=1,
        assignor="grouped 1",
        reset=0,
        recovering_ms=0,
        policy={"accept.individual.commit": "true"},
        members=(MemberView("m-1", 900, "working", {"host": "h1", "label.a": "true"}),),
        partitions=(PartitionView("orders", 0, 5, 50, 45, 1, (LANE,), (SLICES,)),),
        growths=(GrowthView("orders", 1, 2, "all", ordered=True, grace_left_ms=0, waiting=False),),
        unread=("orders-0 lo-hi",),
    ),
    [LINE],
    [FAILING],
)
FAULT = Fault("lost", Inclusive(45, 50), ("3",), "no row")
PARTITION = PartitionAudit("orders", 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, "", 2, (FAULT,))
AUDITED = Audit(
    "g",
    "s",
    (PARTITION,),
    ("a note",),
)
NOTHING = GroupState(0, {}, {}, {}, {}, {}, {}, {}, {})
DOCUMENTS: dict[str, object] = {
    "list": {"groups": [GroupLine("g", "Stable", 1, 45, 0.5)]},
    "audit": documents.of_audit(AUDITED),
    "describe": documents.of_sets([GROUP, GROUP]),
    "gaps": {"partitions": [PartitionGaps("orders", 0, 5, 9, (Gap(str(WHOLE), 5, (Inclusive(5, 8),)),))]},
    "owner": {"owners": [KeyOwner("orders", 0, True, "05", str(WHOLE), 5, (Inclusive(7, 8),), "aa.1", "m-1", "h1")]},
    "events": EventView.of(GroupEvent("1000-0", "join", "m-1", "a reason", "orders 0 lo-hi")),
    "top": TopView(
        "g", "Stable", (MemberActivity("m-1", "working", 1, 45, 0.5, 10.0, 3.0, 93, 2.0, "-", "x"),), (LINE,)
    ),
    "check": Health("g", CheckStatus.FAILING, "Stable", 1, 9, 7.5, False, 3, ("a reason",)),
    "stuck": documents.of_stuck([STRIKE], [FAILING]),
    "release": documents.of_stuck([STRIKE], [FAILING]),
    "drain": documents.of_drain(["m-1"], 2.34, done=True, executed=True),
    "policy": documents.of_policy({"accept.individual.commit": "true"}, executed=False),
    "reset-offsets": documents.of_reset(
        Reset((PartitionReset("orders", 0, 5, 0, True),), NOTHING, {}), Executed(17, True)
    ),
    "redrive": documents.of_redrive(
        RedriveView(3, 3, 0, 1, 1, (LateKey("orders", 0, "05", 1, 2, 1, 1),)),
        "dead",
        "orders",
        parked=1,
        executed=False,
    ),
    "import": documents.of_import(
        Import((Place(TP, 5, (OffsetRange(7, 9),), False),), {}, (TopicPartition("orders", 1),)), executed=False
    ),
    "export": {"executed": True, "partitions": [Exported(*TP, 5, 9)]},
    "delete": documents.of_remains(Remains(9, (TP,)), executed=True),
    "restore": documents.of_copy(GroupCopy("g", 1, {}), executed=True),
    "backup": json.loads(GroupCopy("g", 1, {}).text),
}


def test_every_document_is_on_the_page() -> None:
    assert DOCUMENTS.keys() == TABLES.keys()


@pytest.mark.parametrize("verb", DOCUMENTS)
def test_a_document_has_every_field_of_its_table_and_no_other(verb: str) -> None:
    text = json.dumps(DOCUMENTS[verb], default=asdict)
    assert {path for path, _ in leaves(verb, json.loads(text))} == TABLES[verb].keys()
    check_output(verb, text)


OF_CLASSES = (
    Exported,
    FailingKey,
    GroupLine,
    KeyOwner,
    LaneAtWork,
    LateKey,
    MemberActivity,
    PartitionAudit,
    StrikeView,
)


def test_the_columns_of_the_tables_are_those_that_fields_name() -> None:
    source = (ROOT / "coordinator" / "tools" / "cli" / "tables.py").read_text(encoding="utf-8")
    of_tables = {
        name for text in re.findall(r'"([A-Z][A-Z %/]*(?:, [A-Z %/]+)+)"', source) for name in text.split(", ")
    }
    of_tables |= {"RESET TO", "WAS", "IS NOW", "BY", "FAULT", "BATCH", "WHY"}  # these heads are put together elsewhere
    of_tables |= {column for shown in OF_CLASSES for column in columns_of(shown)}
    named = {name for document in PAGE for field in document.fields for name in field.column.split(", ")}
    assert {name for name in named if name.isupper()} == of_tables


def test_labels_stay_text_and_policies_are_booleans() -> None:
    assert GROUP["policy"] == {"accept.individual.commit": True}
    assert documents.typed({"label.a": "true", "host": "h1"}) == {"label.a": "true", "host": "h1"}


@pytest.mark.parametrize(
    "strange",
    [
        pytest.param({"owners": [{"usual": 1}]}, id="another type"),
        pytest.param({"owners": [{"epoche": "aa.1"}]}, id="another name"),
        pytest.param({"owners": [{"position": None}]}, id="null where the table has none"),
        pytest.param({"found": []}, id="another list"),
    ],
)
def test_a_document_that_differs_from_its_table_is_found(strange: dict[str, object]) -> None:
    with pytest.raises(AssertionError):
        check_output("owner", json.dumps(strange))
