"""Model files: what is in them as tensors, read without running anything that they contain."""
