"""The six charts of docs/benchmarks.md, drawn from the record of measurements. Pure."""

import itertools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from bench.drawing import Bar, Drawing, Group, bars, linear, logarithmic
from bench.record import Row, one

Rows = Sequence[Row]
OURS, THEIRS = "coop-kafka", "Spark's source"
SIDES = (("ours", OURS), ("theirs", THEIRS))


def scaling(rows: Rows) -> str:
    """Records a second by the number of slots."""
    ways = ("a function in the read", "mapInArrow")
    lines = {way: [one(rows, "P6", f"{n} slot", "key order", way) for n in (1, 2, 4, 8)] for way in ways}
    ways_of_spark = ("Spark's source with repartition", "Spark's source with minPartitions", "Spark's source as it is")
    repartition, lost, plain = (one(rows, "P6", name) for name in ways_of_spark)
    told = "; ".join(f"{way}: {', '.join(_rate(row) for row in found)}" for way, found in lines.items())
    description = (
        f"Records/s of one partition with 1, 2, 4 and 8 slots, in key order. coop-kafka, {told}. "
        f"Spark's source with 8 slots: {_rate(plain)}; with repartition by key {_rate(repartition)}; "
        f"with minPartitions, order lost, {_rate(lost)}."
    )
    x, y = linear(8, 80, 470), linear(7000, 280, 50)
    drawing = Drawing("Records/s of one partition, by slots", description, 330)
    for value in range(0, 8000, 1000):
        drawing.line((x(0), y(value)), (x(8), y(value)), "grid")
        drawing.text(70, y(value) + 4, f"{value:,}", "small end")
    for slots in (1, 2, 4, 8):
        drawing.text(x(slots), 300, str(slots), "small middle")
    drawing.text(x(4), 320, "slots", "small middle")
    for (way, found), kind, shift in zip(lines.items(), ("ours", "light"), (12, -2), strict=True):
        points = [(x(n), y(row.value)) for n, row in zip((1, 2, 4, 8), found, strict=True)]
        for before, after in itertools.pairwise(points):
            drawing.line(before, after, "line")
        for place in points:
            drawing.dot(*place, kind)
        drawing.text(x(8) + 12, points[-1][1] + shift, f"{_rate(found[-1])} {way}")
    for row, words in (
        (repartition, "Spark, repartition"),
        (lost, "Spark, minPartitions: order lost"),
        (plain, "Spark"),
    ):
        drawing.dot(x(8), y(row.value), "theirs")
        drawing.text(x(8) + 12, y(row.value) + 4, f"{_rate(row)} {words}")
    return drawing.svg


def slow_key(rows: Rows) -> str:
    """How long batches take while one key is slow, and what the other keys keep."""
    cases = (
        ("function in the read", "in the read by key", "ours"),
        ("mapInArrow", "for which only the clock", "ours"),
        ("mapInArrow, 90 % load", "at 90 %", "ours"),
        ("Spark, repartition by key", "with repartition", "theirs"),
        ("Spark, minPartitions: order lost", "with minPartitions", "theirs"),
    )
    groups = []
    for name, words, kind in cases:
        p95 = one(rows, "P7", words, "p95 of a batch")
        kept = one(rows, "P7", words, "healthy keys, over" if kind == "ours" else "healthy keys")
        groups.append(Group(name, [Bar(p95.value, f"{p95.shown}, {kept.shown} kept", kind)]))
    stuck = one(rows, "P7", "Spark's source: batches that ended within 60 s")
    limit = float(stuck.what.split(" within ")[1].split()[0])
    groups.append(Group("Spark", [Bar(limit, "no batch ended", "theirs")]))
    description = (
        "The time of a batch, p95, while one of 1,000 keys takes 100 times as long, and the share of the other keys' "
        f"records that was kept up with. {_told(groups[:-1])}; Spark: no batch ended within {limit:.0f} s."
    )
    ticks = [(seconds, f"{seconds} s") for seconds in (0, 20, 40, 60)]
    return bars("One slow key: the time of a batch, p95", description, groups, linear(limit), ticks, SIDES)


def nothing_set(rows: Rows) -> str:
    """Time and CPU with no option set, as parts of those of Spark's source."""
    cases = (
        ("100 B, 1 partition (P1)", "P1", "against Spark tuned"),
        ("100 B, 8 partitions (P2)", "P2", "against Spark tuned"),
        ("1 KB, 1 partition (P3)", "P3", "against Spark tuned"),
        ("function in the read (P5)", "P5", "against Spark tuned"),
        ("mapInArrow (P5m)", "P5m", "against Spark tuned"),
        ("a new query (P15)", "P15", "against Spark tuned"),
        ("P15, Spark not tuned", "P15", "its defaults"),
    )
    groups = []
    for name, case, words in cases:
        row = one(rows, case, "no option set", words)
        time, cpu = row.after(": "), row.after("CPU ")
        groups.append(Group(name, [Bar(time, f"{time:.2f}"), Bar(cpu, f"CPU {cpu:.2f}", "light")]))
    description = (
        "Time and CPU of coop-kafka with no option set, divided by those of Spark's source; below 1 coop-kafka needs "
        f"less. {_told(groups)}."
    )
    ticks = [(0, "0"), (0.5, "0.5"), (1, "1"), (1.5, "1.5"), (2, "2")]
    legend = (("ours", "time"), ("light", "CPU"))
    return bars("coop-kafka / Spark's source, no option set", description, groups, linear(2.25), ticks, legend, even=1)


def freshness(rows: Rows) -> str:
    """The age of records in the sink."""
    groups = []
    for rate in (2, 200):
        for part in ("p50", "p95", "p99"):
            of = [one(rows, "P13", f", {rate} records/s,", f"{part}, {side}") for side in (OURS, THEIRS + " with")]
            sides = [Bar(row.value, row.shown, kind) for row, kind in zip(of, ("ours", "theirs"), strict=True)]
            groups.append(Group(f"{rate} records/s, {part}", sides))
    description = f"From CreateTime to the sink, coop-kafka, then Spark's source. {_told(groups)}."
    ticks = [(0.1 * n, f"{100 * n} ms") for n in range(0, 7, 1)]
    return bars("Age of records in the sink", description, groups, linear(0.7), ticks, SIDES)


def many_partitions(rows: Rows) -> str:
    """500 small partitions, on a logarithmic axis."""
    groups = []
    for name, case in (("read 200 records each (P4)", "P4"), ("10 new ones, 3 triggers (P4b)", "P4b")):
        ours, theirs = one(rows, case, ", coop-kafka"), one(rows, case, "once")
        sides = [Bar(ours.value, ours.shown), Bar(theirs.value, theirs.shown, "theirs")]
        groups.append(Group(name, sides))
    description = f"500 partitions, time on a logarithmic axis, coop-kafka, then Spark's source. {_told(groups)}."
    ticks = [(0.1, "0.1 s"), (1, "1 s"), (10, "10 s"), (100, "100 s")]
    return bars("500 small partitions", description, groups, logarithmic(0.1, 500), ticks, SIDES)


def driver_lost(rows: Rows) -> str:
    """How long the keys of a killed driver wait."""
    groups = []
    ways = (
        ("another driver works", "second working member", "ours"),
        ("a standby", "a standby takes over", "ours"),
        ("started again at once", "one driver, started", "light"),
    )
    for name, words, kind in ways:
        median, p99 = (one(rows, "standby", words, f", {part}") for part in ("median", "p99"))
        shown = f"{median.shown}, p99 {p99.shown}"
        groups.append(Group(name, [Bar(median.value, shown, kind, until=p99.value)]))
    description = (
        "How long the keys of a driver wait after kill -9 with a session of 5 s, median and p99 of 30 kills. "
        f"{_told(groups)}."
    )
    ticks = [(seconds, f"{seconds} s") for seconds in (0, 5, 10, 15)]
    legend = (("ours", "another driver takes over: median, and to p99"), ("light", "the same driver again"))
    return bars("A driver is killed: its keys wait", description, groups, linear(16), ticks, legend)


CHARTS: Mapping[str, Callable[[Rows], str]] = MappingProxyType(
    {
        "bench-scaling.svg": scaling,
        "bench-slow-key.svg": slow_key,
        "bench-nothing-set.svg": nothing_set,
        "bench-freshness.svg": freshness,
        "bench-partitions.svg": many_partitions,
        "bench-driver-lost.svg": driver_lost,
    }
)
"""The files in docs/, and what draws them."""


def _rate(row: Row) -> str:
    return row.shown.split()[0]


def _told(groups: Sequence[Group]) -> str:
    return "; ".join(f"{group.name}: {', '.join(bar.shown for bar in group.bars)}" for group in groups)
