"""What is done, what is left, and what may be said of it: segments, positions, offsets of a stream. Pure."""
