"""All seeded faults."""

from mutants import (
    of_assignors,
    of_commits,
    of_early_ends,
    of_filters,
    of_growth,
    of_members,
    of_options,
    of_pinned,
    of_positions,
    of_reading,
    of_replica_sets,
    of_resets,
    of_service,
    of_slices,
    of_slow_keys,
    of_steering,
)

FAULTS = (
    *of_positions.FAULTS,
    *of_growth.FAULTS,
    *of_commits.FAULTS,
    *of_early_ends.FAULTS,
    *of_filters.FAULTS,
    *of_resets.FAULTS,
    *of_members.FAULTS,
    *of_assignors.FAULTS,
    *of_pinned.FAULTS,
    *of_service.FAULTS,
    *of_reading.FAULTS,
    *of_replica_sets.FAULTS,
    *of_slices.FAULTS,
    *of_slow_keys.FAULTS,
    *of_steering.FAULTS,
    *of_options.FAULTS,
)
