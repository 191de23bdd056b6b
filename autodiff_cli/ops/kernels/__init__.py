"""What kernels and rules of several families share: windows, columns, indices, order of sums."""
