"""Functions made of functions: `torch.func`, `torch.autograd.functional`, Jacobians."""
