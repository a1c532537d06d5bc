"""From whole values to kernels: versions of memory, fusion, order, and the plan."""
