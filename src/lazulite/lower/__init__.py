"""From kernels with loops to the list of instructions that an emitter writes."""
