"""Derivatives of `TENSOR` graphs, as `TENSOR` graphs."""
