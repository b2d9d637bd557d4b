"""Done and remaining offsets, and the facts that prove them: segments, positions, stream offsets. Pure."""
