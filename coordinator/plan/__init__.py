"""From what is owned and unread to slices and tasks of one batch. Pure."""
