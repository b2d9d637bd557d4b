"""Reports of costs: from a task to its reader by UDP, believed only if signed, planned, new and within reason."""

import hmac
import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.key_hash import cuts
from coordinator.progress.slices import Slice
from coordinator.ranges import HASH_MAX, WHOLE, HashRange, OffsetRange
from coordinator.subscription import TopicPartition
from coordinator.telemetry import KeyCost, RecordAt, SliceCost
from spark_coop_source.driver.telemetry_receiver import TelemetryReceiver, announced
from spark_coop_source.driver.telemetry_reports import PLANS, LatestReports
from spark_coop_source.telemetry.report import MOST_BYTES, Report, ReportTo, decoded, encoded
from spark_coop_source.telemetry.sender import ReportSender
from streams import eventually

KEY = b"k" * 32
SLICE = Slice(TopicPartition("orders", 3), HashRange(10, HASH_MAX), OffsetRange(100, 200))
OTHER = Slice(TopicPartition("orders", 4), WHOLE, OffsetRange(0, 9))
BEGUN = SliceCost.nothing(SLICE)
COST = replace(BEGUN, rows=50, bytes=5_000, read_ms=1.5, function_ms=80.25, keys=(KeyCost(12, 7.5, 50),), finished=True)


@pytest.mark.parametrize(
    "cost",
    [
        pytest.param(BEGUN, id="nothing yet"),
        pytest.param(COST, id="a finished slice"),
        pytest.param(replace(BEGUN, at=RecordAt(12, 150)), id="the key that is worked on"),
        pytest.param(
            SliceCost.nothing(Slice(TopicPartition("t" * 249, 2**31 - 1), WHOLE, OffsetRange(2**63 - 2, 2**63 - 1))),
            id="the longest names and numbers",
        ),
    ],
)
def test_a_report_comes_back_as_it_was(cost: SliceCost) -> None:
    report = Report(7, 2**63 - 1, 2**63 - 1, replace(cost, keys=(KeyCost(HASH_MAX, 1e9, 10**9),) * 8))
    datagram = encoded(report, KEY)
    assert decoded(datagram, KEY) == report
    assert len(datagram) < 1_000 < MOST_BYTES, "one packet"


@given(st.binary(max_size=100), st.integers(0, 60), st.integers(1, 255))
def test_what_nobody_signed_is_dropped(junk: bytes, place: int, flip: int) -> None:
    datagram = bytearray(encoded(Report(7, 4, 1, COST), KEY))
    assert decoded(bytes(datagram), b"x" * 32) is None, "another reader's key"
    datagram[place] ^= flip
    assert decoded(bytes(datagram), KEY) is None
    assert decoded(junk, KEY) is None


def signed(text: str) -> bytes:
    return hmac.digest(KEY, text.encode(), "sha256")[:16] + text.encode()


REPORT = '[7,4,1,["t",0,0,9,0,5],[1,1,1.0,2.0,true,[3,4],null],[[5,6.0,1]]]'
NO_REPORTS = [
    pytest.param("", id="nothing"),
    pytest.param("[]", id="an empty list"),
    pytest.param("{", id="no JSON"),
    pytest.param("[1,2,3,4,5,6]", id="numbers only"),
    pytest.param("[" * 4_000, id="nested 4,000 deep"),
    pytest.param("[" * 2_000 + "]" * 2_000, id="nested 2,000 deep and closed"),
    pytest.param("{1:" * 800, id="objects nested 800 deep"),
    pytest.param(REPORT.replace('"t"', "[" * 1_000 + "]" * 1_000), id="a topic nested 1,000 deep"),
    pytest.param(REPORT + " " * MOST_BYTES, id="longer than a datagram may be"),
    pytest.param(REPORT.replace("4,1,[", "4," + "9" * 4_000 + ",["), id="a number of 4,000 digits"),
    pytest.param(REPORT.replace("[7,4,", '[7,"4",'), id="an attempt that is text"),
    pytest.param(REPORT.replace("0,9,0,5", "9,0,0,5"), id="hashes upside down"),
    pytest.param(REPORT.replace("[1,1,1.0", "[1,-1,1.0"), id="fewer bytes than none"),
    pytest.param(REPORT.replace("[3,4]", "[3,4,5]"), id="a record of three numbers"),
    pytest.param(REPORT.replace("2.0,true,[3,4],null", "2.0,true"), id="of another version"),
]


@pytest.mark.parametrize("text", NO_REPORTS)
def test_what_is_signed_and_no_report_is_dropped(text: str) -> None:
    assert decoded(signed(REPORT), KEY) is not None
    assert decoded(signed(text), KEY) is None


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("place", range(3))
def test_a_number_that_is_none_is_dropped(place: int, number: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read_ms, function_ms, key_ms = ("1" if i != place else number for i in range(3))
    text = f'[7,4,1,["t",0,1,9,0,5],[1,1,{read_ms},{function_ms},true,null,null],[[5,{key_ms},1]]]'
    monkeypatch.setattr("json.dumps", lambda *_, **__: text)
    assert decoded(encoded(Report(7, 4, 1, COST), KEY), KEY) is None
    monkeypatch.setattr("json.dumps", lambda *_, **__: text.replace(number, "1"))
    assert decoded(encoded(Report(7, 4, 1, COST), KEY), KEY) is not None


class Told:
    """Reports of plan 1 in a row, and what is believed after them."""

    def __init__(self) -> None:
        self.book = LatestReports(concurrency=1)
        self.plan = self.book.open([SLICE], now_ms=1_000)

    def rows(self, *reports: tuple[int, int, SliceCost]) -> list[int]:
        for attempt, number, cost in reports:
            self.book.note(Report(self.plan, attempt, number, cost), now_ms=2_000)
        return [cost.rows for cost in self.book.take()]


def cost(rows: int, *, finished: bool = False) -> SliceCost:
    return replace(BEGUN, rows=rows, finished=finished)


@pytest.mark.parametrize(
    ("reports", "rows"),
    [
        pytest.param([(1, 1, cost(1))], [1], id="a sign of life"),
        pytest.param([(1, 1, cost(1)), (1, 2, cost(2, finished=True))], [2], id="the later one of an attempt"),
        pytest.param([(1, 2, cost(2, finished=True)), (1, 1, cost(1))], [2], id="one that was overtaken"),
        pytest.param([(1, 1, cost(1)), (1, 1, cost(5))], [1], id="one that came twice"),
        pytest.param([(1, 2, cost(2)), (2, 1, cost(1))], [1], id="an attempt that began later goes on"),
        pytest.param([(2, 1, cost(1)), (1, 9, cost(9))], [1], id="an older attempt goes on while a newer one runs"),
        pytest.param([(1, 9, cost(9)), (2, 1, cost(1)), (1, 10, cost(10))], [1], id="two attempts by turns"),
        pytest.param([(2, 1, cost(1)), (1, 9, cost(9, finished=True))], [9], id="an older attempt is done first"),
        pytest.param([(1, 2, cost(2, finished=True)), (2, 1, cost(1))], [2], id="what is finished stays"),
        pytest.param([(1, 1, replace(cost(1), hashes=WHOLE))], [], id="a slice that was not planned"),
        pytest.param([(1, 1, cost(10_000))], [100], id="more rows than offsets"),
    ],
)
def test_what_is_believed(reports: list[tuple[int, int, SliceCost]], rows: list[int]) -> None:
    assert Told().rows(*reports) == rows


def test_news_are_taken_once_and_what_is_old_stays_old() -> None:
    told = Told()
    assert told.rows((1, 2, cost(2))) == [2]
    assert told.rows() == []
    assert told.rows((1, 1, cost(1))) == []
    assert told.rows((1, 3, cost(3))) == [3]


def test_only_the_last_plans_are_heard() -> None:
    book = LatestReports(concurrency=1)
    numbers = [book.open([SLICE], now_ms=0) for _ in range(PLANS + 1)]
    book.note(Report(numbers[0], 1, 1, COST), now_ms=0)
    book.note(Report(numbers[-1] + 1, 1, 1, COST), now_ms=0)
    assert book.take() == []
    book.note(Report(numbers[1], 1, 1, COST), now_ms=100)
    assert book.take() == [COST]


def test_records_are_handed_on_when_the_first_word_of_it_comes() -> None:
    book = LatestReports(1)
    plan = book.open([SLICE], now_ms=5_000)
    seen = []
    for number, each in enumerate([BEGUN, replace(BEGUN, rows=1, handed_ms=3.0), replace(COST, handed_ms=3.0)]):
        book.note(Report(plan, 1, number, each), now_ms=5_000 + 1_000 * number)
        seen += [cost.handed_ms for cost in book.take()]
    assert seen == [None, 1_000, 1_000], "by the clock that plans, not by the task's"


@pytest.fixture
def receiver() -> Iterator[TelemetryReceiver]:
    with closing(TelemetryReceiver(["127.0.0.1:9092"], 1)) as made:
        yield made


def heard(receiver: TelemetryReceiver, count: int) -> list[SliceCost]:
    found: list[SliceCost] = []

    def all_here() -> bool:
        found.extend(receiver.take())
        return len(found) >= count

    eventually(all_here, f"{count} costs are heard", 20)
    return found


def test_costs_come_from_a_task_to_its_reader(receiver: TelemetryReceiver) -> None:
    assert receiver.take() == []
    to = receiver.report_to([SLICE, OTHER])
    assert to is not None
    assert to.host == "127.0.0.1"
    with ReportSender(to) as sender:
        sender.send(COST)
        sender.send(SliceCost.nothing(OTHER))
    found = heard(receiver, 2)
    assert {found[0].slice, found[1].slice} == {SLICE, OTHER}
    assert next(c for c in found if c.slice == SLICE).rows == 50


def test_a_forged_report_is_not_heard(receiver: TelemetryReceiver) -> None:
    to = receiver.report_to([SLICE, OTHER])
    assert to is not None
    with (
        ReportSender(replace(to, key=KEY)) as forger,
        ReportSender(replace(to, plan=9)) as lost,
        ReportSender(to) as ours,
    ):
        forger.send(COST)
        lost.send(COST)
        with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as junk:
            nested = b"[" * 4_000
            junk.sendto(hmac.digest(to.key, nested, "sha256")[:16] + nested, (to.host, to.port))
            junk.sendto(b"junk", (to.host, to.port))
            junk.sendto(b"", (to.host, to.port))
        ours.send(SliceCost.nothing(OTHER))
    assert heard(receiver, 1) == [SliceCost.nothing(OTHER)]


def test_a_report_that_nobody_waits_for_costs_the_task_nothing(receiver: TelemetryReceiver) -> None:
    to = receiver.report_to([SLICE])
    assert to is not None
    receiver.close()
    for gone in (to, replace(to, host="0.0.0.1"), replace(to, host="::1")):
        with ReportSender(gone) as sender:
            for _ in range(50):
                sender.send(COST)
    assert receiver.report_to([SLICE]) is None


def test_the_key_is_not_shown() -> None:
    assert "secret" not in repr(ReportTo("127.0.0.1", 9, 1, b"secret"))


@pytest.mark.parametrize(
    ("towards", "host"),
    [
        pytest.param(["127.0.0.1:9092"], "127.0.0.1", id="a broker on this host"),
        pytest.param(["no.such.host.invalid:9092", "127.0.0.1:9092"], "127.0.0.1", id="the first that is known"),
        pytest.param(["[127.0.0.1]:9092"], "127.0.0.1", id="brackets as of IPv6"),
    ],
)
def test_the_address_announced_is_that_on_the_way_to_a_broker(towards: list[str], host: str) -> None:
    assert announced(towards) == (host, socket.AF_INET)


def test_sparks_own_address_goes_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    assert announced(["192.0.2.1:9092"]) == ("127.0.0.1", socket.AF_INET)


def test_where_no_address_can_be_had_nothing_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    with closing(TelemetryReceiver(["no.such.host.invalid:9092"], 1)) as deaf:
        assert deaf.report_to([SLICE]) is None
        assert deaf.take() == []


def test_cuts_of_one_partition_are_told_apart(receiver: TelemetryReceiver) -> None:
    slices = [Slice(TopicPartition("orders", 0), hashes, OffsetRange(0, 9)) for hashes in cuts(50)]
    to = receiver.report_to(slices)
    assert to is not None
    with ReportSender(to) as sender:
        for s in slices:
            sender.send(SliceCost.nothing(s))
            assert heard(receiver, 1) == [SliceCost.nothing(s)]
