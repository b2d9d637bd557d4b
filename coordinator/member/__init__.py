"""What one member does between two batches: the shell that brings decisions and servers together."""
