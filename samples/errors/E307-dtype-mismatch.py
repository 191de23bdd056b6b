import torch

A = torch.ones(2, 2)
x = torch.ones(2, dtype=torch.float64)
y = A @ x
