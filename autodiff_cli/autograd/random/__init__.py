"""PyTorch's CPU random stream, and initial values drawn from it."""
