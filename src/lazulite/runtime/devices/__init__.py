"""The devices, one module each, imported when `runtime/registry.py` opens one."""
