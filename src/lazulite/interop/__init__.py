"""Names by which programs written for other libraries find Lazulite: the array API standard, NumPy, tinygrad."""
