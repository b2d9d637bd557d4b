"""From owned, unread ranges to the slices and tasks of one batch. Pure."""
