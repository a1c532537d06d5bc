"""A kernel's schedule as data: steps, their application, and how they are chosen."""
