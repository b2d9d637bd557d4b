"""Hashes all keys of a chunk at once, and selects the rows of a lane."""
