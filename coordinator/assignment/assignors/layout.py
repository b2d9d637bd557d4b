"""Lays out the members' parts in the hash space of one partition, from their sizes.

    before   |  A        |  B        |          C gets a third:
    after    |  A    |  C    |  B    |          only C's third moves

Kept parts stay where they are. New parts go into space that others release, beside the member's own part if possible.
So a member may have several ranges. With too many ranges the partition is laid out anew, one range for each member.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from coordinator.assignment.assignors.fair import SPACE
from coordinator.values.ranges import HashRange

RANGES_PER_MEMBER = 4
"""The most ranges of a member on average."""


class Piece(NamedTuple):
    """Hashes [lo, until) of one owner, or free."""

    lo: int
    until: int
    owner: str | None

    @property
    def size(self) -> int:
        """Number of hash values."""
        return self.until - self.lo


def tiled(ranges: Iterable[tuple[HashRange, str]]) -> list[Piece]:
    """Pieces that tile the space: the ranges, and the holes between them. If two overlap, the lower one wins."""
    pieces, at = list[Piece](), 0
    for hashes, owner in sorted(ranges):
        if hashes.hi < at:
            continue
        if hashes.lo > at:
            pieces.append(Piece(at, hashes.lo, None))
        pieces.append(Piece(max(at, hashes.lo), hashes.hi + 1, owner))
        at = hashes.hi + 1
    if at < SPACE:
        pieces.append(Piece(at, SPACE, None))
    return _joined(pieces)


def sizes(pieces: Iterable[Piece]) -> dict[str, int]:
    """The number of hashes of each owner."""
    total: dict[str, int] = {}
    for piece in pieces:
        if piece.owner is not None:
            total[piece.owner] = total.get(piece.owner, 0) + piece.size
    return total


def lay_out(before: Sequence[Piece], wanted: Mapping[str, int]) -> list[Piece]:
    """Pieces that tile the space, of the wanted sizes, which sum up to the space."""
    if len(wanted) == 1:
        return [Piece(0, SPACE, owner) for owner in wanted]
    kept = _filled(_trimmed(before, wanted), wanted)
    if len(kept) == len(wanted):
        return kept
    anew = _in_a_row(before, wanted)
    if len(kept) > RANGES_PER_MEMBER * len(wanted) or _stays(before, anew) >= _stays(before, kept):
        return anew
    return kept


def _trimmed(before: Sequence[Piece], wanted: Mapping[str, int]) -> list[Piece]:
    """`before` without the surplus of its owners: their smallest pieces first, then one end of the next."""
    have = sizes(before)
    surplus = {owner: size - wanted.get(owner, 0) for owner, size in have.items()}
    pieces: dict[int, list[Piece]] = {}
    for i in sorted(range(len(before)), key=lambda i: (before[i].size, i)):
        owner = before[i].owner
        gone = 0 if owner is None else max(0, min(surplus[owner], before[i].size))
        if owner is not None:
            surplus[owner] -= gone
        lo, until, _ = before[i]  # by turns at the right and at the left, so that free parts of neighbours touch
        cut = lo + gone if i % 2 else until - gone
        pieces[i] = [Piece(lo, cut, None if i % 2 else owner), Piece(cut, until, owner if i % 2 else None)]
    return _joined(p for i in range(len(before)) for p in pieces[i])


def _filled(pieces: Sequence[Piece], wanted: Mapping[str, int]) -> list[Piece]:
    """The holes assigned to members that lack hashes: to neighbours first, then the largest to the largest."""
    have = sizes(pieces)
    lack = {m: size - have.get(m, 0) for m, size in wanted.items() if size > have.get(m, 0)}
    full: list[Piece] = []
    holes: list[Piece] = []
    for i, piece in enumerate(pieces):
        if piece.owner is not None:
            full.append(piece)
            continue
        before, after = (pieces[j].owner if 0 <= j < len(pieces) else None for j in (i - 1, i + 1))
        left = _take(lack, before, piece.size)
        right = _take(lack, after, piece.size - left)
        full += [Piece(piece.lo, piece.lo + left, before), Piece(piece.until - right, piece.until, after)]
        holes.append(Piece(piece.lo + left, piece.until - right, None))
    return _joined(sorted(full + _handed_out(holes, lack)))


def _take(lack: dict[str, int], owner: str | None, most: int) -> int:
    if owner is None or owner not in lack:
        return 0
    taken = min(lack[owner], most)
    lack[owner] -= taken
    return taken


def _handed_out(holes: list[Piece], lack: dict[str, int]) -> list[Piece]:
    given: list[Piece] = []
    members = sorted(lack, key=lambda m: (-lack[m] if len(holes) > 1 else 0, m))
    for hole in sorted(holes, key=lambda p: (-p.size, p.lo)):
        lo = hole.lo
        while lo < hole.until:
            owner = next(m for m in members if lack[m])
            taken = _take(lack, owner, hole.until - lo)
            given.append(Piece(lo, lo + taken, owner))
            lo += taken
    return given


def _in_a_row(before: Sequence[Piece], wanted: Mapping[str, int]) -> list[Piece]:
    """One piece for each member: in the order of before, the newcomers last."""
    first: dict[str, Piece] = {}
    for piece in before:
        owner = piece.owner
        if owner is not None and owner in wanted and (owner not in first or first[owner].size < piece.size):
            first[owner] = piece
    row, lo = list[Piece](), 0
    for member in (*sorted(first, key=lambda m: first[m]), *sorted(m for m in wanted if m not in first)):
        row.append(Piece(lo, lo + wanted[member], member))
        lo += wanted[member]
    return row


def _stays(before: Sequence[Piece], after: Sequence[Piece]) -> int:
    """The number of hashes that keep their owner."""
    total, i = 0, 0
    for piece in after:
        while before[i].until <= piece.lo:
            i += 1
        j = i
        while j < len(before) and before[j].lo < piece.until:
            if before[j].owner == piece.owner:
                total += min(before[j].until, piece.until) - max(before[j].lo, piece.lo)
            j += 1
    return total


def _joined(pieces: Iterable[Piece]) -> list[Piece]:
    """The same without empty pieces, touching ones of one owner as one."""
    joined: list[Piece] = []
    for piece in pieces:
        if not piece.size:
            continue
        if joined and joined[-1].owner == piece.owner:
            joined[-1] = Piece(joined[-1].lo, piece.until, piece.owner)
        else:
            joined.append(piece)
    return joined
