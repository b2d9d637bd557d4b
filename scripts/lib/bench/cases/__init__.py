"""The cases of the benchmark, one file for each idea; `CASES` maps names of the command line to them."""

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from bench.cases import (
    audit,
    broker_bytes,
    failing_keys,
    first_minute,
    fleets,
    functions_inside,
    hot_key,
    latency,
    many_partitions,
    many_topics,
    memory,
    model,
    outages,
    rare_key,
    skew,
    slots,
    sockets,
    stages,
    standbys,
    takeover,
    throughput,
    trigger,
    waiting,
    wall,
    without_order,
)
from bench.table import Result
from bench.world import World

Case = Callable[[World], Iterator[Result]]

CASES: Mapping[str, Case] = MappingProxyType(
    {
        "P1": throughput.p1,
        "P2": throughput.p2,
        "P3": throughput.p3,
        "P4": many_partitions.p4,
        "P4b": many_partitions.p4b,
        "P5": functions_inside.p5,
        "P5m": functions_inside.p5m,
        "P9": broker_bytes.p9,
        "P12": waiting.p12,
        "P12a": waiting.p12_async,
        "P13": latency.p13,
        "P14": first_minute.p14,
        "P15": first_minute.p15,
        "hotkey": hot_key.hotkey,
        "hotkey-clock": hot_key.hotkey_clock,
        "hotkey-full": hot_key.hotkey_full,
        "model": model.model,
        "P16": rare_key.p16,
        "P17": takeover.p17,
        "P17r": takeover.p17_rivals,
        "P18": outages.p18,
        "P19": many_topics.topics,
        "cpu": slots.waiting_inside,
        "cpu-clock": slots.waiting_behind,
        "cpu-busy": slots.busy,
        "skew": skew.skew,
        "none-bytes": without_order.none_bytes,
        "none-hotkey": without_order.none_hot_key,
        "failing": failing_keys.failing,
        "frozen": fleets.frozen,
        "poison": fleets.poison,
        "codec": throughput.codec,
        "lanes": throughput.lanes,
        "audit": audit.audit,
        "sockets": sockets.sockets,
        "stages": stages.stages,
        "standby": standbys.standby,
        "wall": wall.wall,
        "memory": memory.memory,
        "trigger": trigger.trigger,
    }
)
