"""The front end: the Tensor class by families of methods."""
