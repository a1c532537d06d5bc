"""From instructions to machine code or text for one target."""
