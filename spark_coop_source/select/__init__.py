"""The hash of every key at once, by which a lane keeps its rows."""
