"""Fewest shares: shifts amounts around circles until the graph of members and their things is a forest. Pure.

    p0 - A        A and B both have parts of p0 and of p1: a circle. Assign to A more of p0 and less of
    |    |        p1, B the reverse: all totals stay, until one of the four parts is empty.
    B - p1

A forest of k members has at most k - 1 parts more than things. If all totals are multiples of a number, so are all
parts.
"""

from collections.abc import Mapping
from itertools import pairwise

Held = Mapping[int, Mapping[str, int]]
"""Thing -> member -> its amount before."""

Given = dict[int, dict[str, int]]
"""Thing -> member -> its amount now, more than 0."""

_Edge = tuple[int, str]
_Node = int | str


def prune(given: Given, held: Held) -> None:
    """Make `given` a forest in place, with the same totals, near the amounts `held` before."""
    tree: dict[_Node, dict[_Node, None]] = {}
    edges = [(-amount, thing, member) for thing, members in given.items() for member, amount in members.items()]
    for _, thing, member in sorted(edges):
        if member not in given[thing]:
            continue
        circle = _circle(tree, thing, member)
        if circle:
            _turn(given, held, circle)
            _forget(tree, given, circle)
        if member in given[thing]:
            tree.setdefault(thing, {})[member] = None
            tree.setdefault(member, {})[thing] = None


def _circle(tree: dict[_Node, dict[_Node, None]], thing: int, member: str) -> list[_Edge]:
    """The edges of the circle that (thing, member) closes, in order from that one; none if it closes none."""
    if thing not in tree or member not in tree:
        return []
    came: dict[_Node, _Node] = {thing: thing}
    queue: list[_Node] = [thing]
    for node in queue:
        if node == member:
            break
        for other in tree[node]:
            if other not in came:
                came[other] = node
                queue.append(other)
    if member not in came:
        return []
    path: list[_Node] = [thing, member]
    while path[-1] != thing:
        path.append(came[path[-1]])
    return [_edge(a, b) for a, b in pairwise(path)]


def _edge(a: _Node, b: _Node) -> _Edge:
    return (a, str(b)) if isinstance(a, int) else (int(b), a)


def _turn(given: Given, held: Held, circle: list[_Edge]) -> None:
    """Shift along the circle, in the direction that takes less from earlier holders."""
    up, down = circle[::2], circle[1::2]
    if _cost(given, held, down, up) < _cost(given, held, up, down):
        up, down = down, up
    amount = min(given[t][m] for t, m in down)
    for t, m in up:
        given[t][m] += amount
    for t, m in down:
        given[t][m] -= amount
        if not given[t][m]:
            del given[t][m]


def _cost(given: Given, held: Held, up: list[_Edge], down: list[_Edge]) -> int:
    """The additional move if each of `up` gets the smallest amount of `down`."""
    amount = min(given[t][m] for t, m in down)

    def moved(edge: _Edge, change: int) -> int:
        thing, member = edge
        was, now = held[thing].get(member, 0), given[thing][member]
        return max(0, now + change - was) - max(0, now - was)

    return sum(moved(e, amount) for e in up) + sum(moved(e, -amount) for e in down)


def _forget(tree: dict[_Node, dict[_Node, None]], given: Given, circle: list[_Edge]) -> None:
    for thing, member in circle[1:]:
        if member not in given[thing]:
            del tree[thing][member]
            del tree[member][thing]
