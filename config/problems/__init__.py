"""What is wrong, and what mends it."""
