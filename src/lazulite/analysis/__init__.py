"""What can be known about a graph without changing it."""
