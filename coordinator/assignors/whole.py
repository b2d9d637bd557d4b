"""How many whole partitions the members get that do not share (spec 4.1)."""

from collections.abc import Mapping, Sequence

from coordinator.assignors.fair import Pool, fair_shares
from coordinator.assignors.layout import SPACE


def whole_shares(capacity: Mapping[str, int], sharing: frozenset[str], pools: Sequence[Pool]) -> list[dict[str, int]]:
    """Per pool (amounts in partitions), member that does not share -> its number of whole partitions.

    Its fair share rounded down, so that it starves nobody who shares; where nobody shares, the
    partitions left over go to the largest fractions. Does not depend on what was held before.
    """
    if all(sharing.issuperset(pool.members) for pool in pools):
        return [{} for _ in pools]
    fair = fair_shares(capacity, [Pool(p.amount * SPACE, p.members) for p in pools], {})
    return [
        _rounded(pool, {m: fair[i].get(m, 0) for m in pool.members if m not in sharing}, sharing)
        for i, pool in enumerate(pools)
    ]


def _rounded(pool: Pool, fair: Mapping[str, int], sharing: frozenset[str]) -> dict[str, int]:
    whole = {m: amount // SPACE for m, amount in fair.items()}
    if sharing.isdisjoint(pool.members):
        largest = sorted(fair, key=lambda m: (-(fair[m] % SPACE), m))
        for m in largest[: pool.amount - sum(whole.values())]:
            whole[m] += 1
    return {m: n for m, n in whole.items() if n}
