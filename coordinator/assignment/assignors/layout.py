"""Lays out the shares of a pool in its partitions: whole partitions first, and little moves. Pure.

    before   |  A        |  B        |          C gets a third:
    after    |  A    |  C    |  B    |          only C's third moves

A member with a share of 3.4 partitions keeps or gets 3 whole ones. The fractions share the rest: kept parts stay where
they are, new parts go into free space, and `without_circles` then makes the splits few. A partition with too many
pieces is laid out anew.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from coordinator.assignment.assignors.forest import Part, without_circles
from coordinator.assignment.assignors.shares import Shares
from coordinator.values.ranges import HASH_MAX, HashRange

FREE = ""
"""The owner of a free piece."""

_PIECES = 4
"""The most pieces of an owner in a partition, on average."""


class OwnedPiece(NamedTuple):
    """Some units of a partition, behind those of the piece before."""

    partition: int
    owner: str
    units: int


def pieces_of(partition: int, ranges: Iterable[tuple[HashRange, str]], whole: int) -> list[OwnedPiece]:
    """The earlier ranges of a partition, to the nearest unit. If two overlap, the lower one wins."""
    pieces, at = list[OwnedPiece](), 0
    for hashes, owner in sorted(ranges):
        lo, until = (max(at, _units(bound, whole)) for bound in (hashes.lo, hashes.hi + 1))
        pieces += [OwnedPiece(partition, FREE, lo - at), OwnedPiece(partition, owner, until - lo)]
        at = until
    return _joined([*pieces, OwnedPiece(partition, FREE, whole - at)])


def _units(hashes: int, whole: int) -> int:
    return (hashes * whole + HASH_MAX // 2) // (HASH_MAX + 1)


def ranges_of(pieces: Iterable[OwnedPiece], whole: int) -> Iterator[tuple[OwnedPiece, HashRange]]:
    """Each piece with its range."""
    ends = Counter[int]()
    for piece in pieces:
        lo = (HASH_MAX + 1) * ends[piece.partition] // whole
        ends[piece.partition] += piece.units
        yield piece, HashRange(lo, (HASH_MAX + 1) * ends[piece.partition] // whole - 1)


def lay_out(before: Sequence[OwnedPiece], shares: Shares) -> list[OwnedPiece]:
    """The pieces of all partitions of the pool, none of them free; `before` has the earlier ones."""
    owners = _owners(before, Counter({m: units // shares.whole for m, units in shares.given.items()}))
    rest = +Counter({m: units % shares.whole for m, units in shares.given.items()})
    shared = [piece for piece in before if piece.partition not in owners]
    parts = without_circles(_parts(_placed(shared, rest)))
    laid = [OwnedPiece(p, m, shares.whole) for p, m in owners.items()]
    for p, pieces in groupby(shared, key=itemgetter(0)):
        wanted = Counter({m: units for (partition, m), units in parts.items() if partition == p})
        kept = _placed(list(pieces), wanted)
        laid += kept if len(kept) <= _PIECES * len(wanted) else _placed([OwnedPiece(p, FREE, shares.whole)], wanted)
    return laid


def _owners(before: Sequence[OwnedPiece], wants: Counter[str]) -> dict[int, str]:
    """Partition -> the member that gets all of it: the one that had most of it, or one that lacks some."""
    parts = _parts(before)
    owners: dict[int, str] = {}
    for (p, m), _ in parts.most_common():
        if p not in owners and _take(wants, m, 1):
            owners[p] = m
    others = sorted({p for p, _ in parts} - owners.keys(), key=lambda p: (-parts[p, FREE], p))
    return owners | dict(zip(others, sorted(wants.elements()), strict=False))


def _trimmed(pieces: Sequence[OwnedPiece], wanted: Counter[str]) -> list[OwnedPiece]:
    """`pieces` without the surplus of their owners: their smallest pieces first, then one end of the next."""
    surplus = _totals(pieces) - wanted
    cut: dict[int, list[OwnedPiece]] = {}
    for i in sorted(range(len(pieces)), key=lambda i: (pieces[i].units, i)):
        p, owner, units = pieces[i]
        gone = _take(surplus, owner, units)
        ends = [OwnedPiece(p, FREE, gone), OwnedPiece(p, owner, units - gone)]
        cut[i] = ends if i % 2 else ends[::-1]  # by turns, so that free ends of neighbours touch
    return _joined(piece for i in sorted(cut) for piece in cut[i])


def _placed(pieces: Sequence[OwnedPiece], wanted: Counter[str]) -> list[OwnedPiece]:
    """The pieces without surplus; free ones go to neighbours first, then the largest to the member that lacks most."""
    pieces = _trimmed(pieces, wanted)
    lack = wanted - _totals(pieces)
    pieces = _joined(_beside(pieces, lack))
    lacking = [m for m, _ in lack.most_common()]
    filled: dict[int, list[OwnedPiece]] = {}
    for i in sorted(range(len(pieces)), key=lambda i: (-pieces[i].units, i)):
        filled[i] = [pieces[i]] if pieces[i].owner else list(_handed_out(pieces[i], lacking, lack))
    return _joined(piece for i in sorted(filled) for piece in filled[i])


def _beside(pieces: Sequence[OwnedPiece], lack: Counter[str]) -> Iterator[OwnedPiece]:
    """The free pieces assigned to their neighbours, up to what these lack."""
    edge = OwnedPiece(-1, FREE, 0)
    for before, (p, owner, units), after in zip([edge, *pieces], pieces, [*pieces[1:], edge], strict=False):
        left, right = (beside.owner if owner == FREE and beside.partition == p else FREE for beside in (before, after))
        lower = _take(lack, left, units)
        upper = _take(lack, right, units - lower)
        yield from (
            OwnedPiece(p, left, lower),
            OwnedPiece(p, owner, units - lower - upper),
            OwnedPiece(p, right, upper),
        )


def _handed_out(free: OwnedPiece, lacking: Sequence[str], lack: Counter[str]) -> Iterator[OwnedPiece]:
    p, _, left = free
    for m in lacking:
        taken = _take(lack, m, left)
        left -= taken
        yield OwnedPiece(p, m, taken)


def _take(amounts: Counter[str], owner: str, most: int) -> int:
    """As much of `most` as the owner's amount has."""
    taken = min(amounts[owner], most)
    amounts[owner] -= taken
    return taken


def _parts(pieces: Iterable[OwnedPiece]) -> Counter[Part]:
    parts = Counter[Part]()
    for p, owner, units in pieces:
        parts[p, owner] += units
    return parts


def _totals(pieces: Iterable[OwnedPiece]) -> Counter[str]:
    totals = Counter[str]()
    for _, owner, units in pieces:
        totals[owner] += units
    return totals


def _joined(pieces: Iterable[OwnedPiece]) -> list[OwnedPiece]:
    """The same without empty pieces, touching ones of one owner as one."""
    runs = groupby((piece for piece in pieces if piece.units), key=itemgetter(0, 1))
    return [OwnedPiece(p, owner, sum(piece.units for piece in run)) for (p, owner), run in runs]
