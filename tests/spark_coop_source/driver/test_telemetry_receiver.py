"""Costs travel by UDP from the sender in a task to the receiver in the reader; forged ones are dropped."""

import hmac
import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from coordinator.key_hash import cuts
from coordinator.progress.slices import Slice
from coordinator.ranges import OffsetRange
from coordinator.subscription import TopicPartition
from coordinator.telemetry import SliceCost
from slice_costs import COST, OTHER, SLICE
from spark_coop_source.driver.telemetry_receiver import TelemetryReceiver, announced
from spark_coop_source.telemetry.report import ReportTo
from spark_coop_source.telemetry.sender import ReportSender
from streams import eventually

KEY = b"k" * 32


@pytest.fixture
def receiver() -> Iterator[TelemetryReceiver]:
    with closing(TelemetryReceiver(["127.0.0.1:9092"], 1)) as made:
        yield made


def received(receiver: TelemetryReceiver, count: int) -> list[SliceCost]:
    found: list[SliceCost] = []

    def all_here() -> bool:
        found.extend(receiver.take())
        return len(found) >= count

    eventually(all_here, f"{count} costs have arrived", 20)
    return found


def test_costs_come_from_a_task_to_its_reader(receiver: TelemetryReceiver) -> None:
    assert receiver.take() == []
    to = receiver.report_to([SLICE, OTHER])
    assert to is not None
    assert to.host == "127.0.0.1"
    with ReportSender(to) as sender:
        sender.send(COST)
        sender.send(SliceCost.nothing(OTHER))
    found = received(receiver, 2)
    assert {found[0].slice, found[1].slice} == {SLICE, OTHER}
    assert next(c for c in found if c.slice == SLICE).rows == 50


def test_a_forged_report_is_dropped(receiver: TelemetryReceiver) -> None:
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
    assert received(receiver, 1) == [SliceCost.nothing(OTHER)]


def test_a_report_without_a_receiver_costs_the_task_nothing(receiver: TelemetryReceiver) -> None:
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


def test_without_an_address_no_report_is_received(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_LOCAL_IP", raising=False)
    with closing(TelemetryReceiver(["no.such.host.invalid:9092"], 1)) as deaf:
        assert deaf.report_to([SLICE]) is None
        assert deaf.take() == []


def test_cuts_of_one_partition_are_distinguished(receiver: TelemetryReceiver) -> None:
    slices = [Slice(TopicPartition("orders", 0), hashes, OffsetRange(0, 9)) for hashes in cuts(50)]
    to = receiver.report_to(slices)
    assert to is not None
    with ReportSender(to) as sender:
        for s in slices:
            sender.send(SliceCost.nothing(s))
            assert received(receiver, 1) == [SliceCost.nothing(s)]
