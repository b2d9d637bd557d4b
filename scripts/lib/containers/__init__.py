"""The container image, and drivers and executors that run in it, for scripts/image."""
