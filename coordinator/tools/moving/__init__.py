"""Moves positions from other consumers to a group, and back."""
