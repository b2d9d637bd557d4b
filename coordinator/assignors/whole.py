"""How many whole partitions the members get that do not share."""

from collections.abc import Mapping, Sequence

from coordinator.assignors.fair import Pool, Shares, fair_shares


def whole_shares(capacity: Mapping[str, int], sharing: frozenset[str], pools: Sequence[Pool]) -> list[dict[str, int]]:
    """Per pool, member that does not share -> its number of whole partitions.

    Its fair share rounded down, so that it starves nobody who shares; where nobody shares, the
    partitions left over go to the largest fractions. Does not depend on what was held before.
    """
    if all(sharing.issuperset(pool.members) for pool in pools):
        return [{} for _ in pools]
    return [_rounded(p, shares, sharing) for p, shares in zip(pools, fair_shares(capacity, pools, {}), strict=True)]


def _rounded(pool: Pool, shares: Shares, sharing: frozenset[str]) -> dict[str, int]:
    fair = {m: amount for m, amount in shares.given.items() if m not in sharing}
    whole = {m: amount // shares.whole for m, amount in fair.items()}
    if sharing.isdisjoint(pool.members):
        largest = sorted(fair, key=lambda m: (-(fair[m] % shares.whole), m))
        for m in largest[: pool.partitions - sum(whole.values())]:
            whole[m] += 1
    return {m: n for m, n in whole.items() if n}
