"""What a member tells of its lanes, as values and as text. Pure."""
