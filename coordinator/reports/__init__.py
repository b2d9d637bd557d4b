"""Reports of members about lanes and batches, as values and as text. Pure."""
