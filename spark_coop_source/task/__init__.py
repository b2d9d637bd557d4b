"""In an executor: what a task is told, and how it reads its slices."""
