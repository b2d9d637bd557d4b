"""The user's function inside the read: called by slice or by key, its output checked."""
