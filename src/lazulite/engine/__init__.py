"""Compiles graphs once, executes plans, and keeps what tensors hold."""
