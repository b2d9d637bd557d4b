"""What operators and onlookers ask for from outside of any member: views, gaps, owners, resets."""
