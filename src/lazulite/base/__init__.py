"""What every other layer may use: settings, errors, the user's line, the cache on disk, the terminal."""
