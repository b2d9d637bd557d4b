"""The limit of a partition at its cap of individual commits (rule: individual-commit-cap). Pure.

    ahead    |########....##..##       gaps only: up to its last individual commit
    ahead    |##########               nothing new
    behind   |####~~~~~~~~~~~~~~>      as always
                 ^ stable offset

The lane behind moves the stable offset, and the lanes with gaps shrink the set. So the set always drains: each
lane either fills gaps, or is itself behind once the others have passed it.
"""

from collections.abc import Mapping

from coordinator.plan.planning import Piece, Pieces
from coordinator.progress.segments import Progress
from coordinator.subscription import TopicPartition


def held_back(work: Pieces, whole: Mapping[TopicPartition, Progress], most: int) -> Pieces:
    """`work` with a ceiling for each piece ahead, in partitions with `most` individual commits or more.

    `whole` has the positions of all hashes of each partition, whoever owns them.
    """
    full = {tp: progress.stable for tp, progress in whole.items() if tp in work and _held(progress) >= most}
    return {**work, **{tp: tuple(_lowered(piece, stable) for piece in work[tp]) for tp, stable in full.items()}}


def _held(progress: Progress) -> int:
    return sum(len(s.ics) for s in progress.segments)


def _lowered(piece: Piece, stable: int) -> Piece:
    if piece.position == stable:
        return piece
    ceiling = piece.ics[-1].start if piece.ics else piece.position
    return piece._replace(ceiling=ceiling if piece.ceiling is None else min(piece.ceiling, ceiling))
