"""Runs in an executor: the input partition of a task, and how the task reads its slices."""
