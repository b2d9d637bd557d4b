"""Fewest splits: the graph of partitions and their members without circles, with the same totals. Pure.

    p0 - A        A and B both have parts of p0 and of p1: a circle. The smallest part goes, say B's of p0: A gets it,
    |    |        and B as much of A's part of p1.
    B - p1

Without circles, k members have at most k - 1 parts more than partitions. If totals are multiples of a number, so are
the parts.
"""

from collections.abc import Mapping

Part = tuple[int, str]
"""A partition and its member."""


def without_circles(parts: Mapping[Part, int]) -> dict[Part, int]:
    """The units of the parts that remain, the larger ones first."""
    kept: dict[Part, int] = {}
    for part in sorted(parts, key=lambda part: (-parts[part], part)):
        circle = _circle(part, kept)
        kept[part] = parts[part]
        if circle:
            _turn(kept, circle)
    return kept


def _circle(part: Part, kept: Mapping[Part, int]) -> list[Part]:
    """The parts of the circle that `part` closes, in order from it on; none if it closes none."""
    beside: dict[int | str, list[Part]] = {}
    for edge in kept:
        for node in edge:
            beside.setdefault(node, []).append(edge)
    paths: dict[int | str, list[Part]] = {part[0]: [part]}
    nodes: list[int | str] = [part[0]]
    for node in nodes:
        for edge in beside.get(node, ()):
            other = edge[1] if node == edge[0] else edge[0]
            if other not in paths:
                paths[other] = [*paths[node], edge]
                nodes.append(other)
    return paths.get(part[1], [])


def _turn(kept: dict[Part, int], circle: list[Part]) -> None:
    """Take the smallest part of the circle from every second part, and add it to the others."""
    first = min(range(len(circle)), key=lambda i: kept[circle[i]])
    amount = kept[circle[first]]
    for i, part in enumerate(circle):
        kept[part] += amount if (i - first) % 2 else -amount
        if not kept[part]:
            del kept[part]
