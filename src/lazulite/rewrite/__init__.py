"""Rules that replace nodes by better ones, and the engine that applies them."""
