"""What lanes cost, and what follows for how much of them is read and where they are cut. Pure."""
