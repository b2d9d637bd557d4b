"""All seeded faults."""

from mutants import (
    of_commits,
    of_early_ends,
    of_filters,
    of_members,
    of_options,
    of_pinned,
    of_policies,
    of_positions,
    of_reading,
    of_resets,
    of_service,
    of_slices,
    of_slow_keys,
    of_steering,
)

FAULTS = (
    *of_positions.FAULTS,
    *of_commits.FAULTS,
    *of_early_ends.FAULTS,
    *of_filters.FAULTS,
    *of_resets.FAULTS,
    *of_members.FAULTS,
    *of_pinned.FAULTS,
    *of_policies.FAULTS,
    *of_service.FAULTS,
    *of_reading.FAULTS,
    *of_slices.FAULTS,
    *of_slow_keys.FAULTS,
    *of_steering.FAULTS,
    *of_options.FAULTS,
)
