"""Devices and what runs on them: memory, queues of commands, loaded programs, counters."""
