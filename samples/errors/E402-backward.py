import torch

A = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
loss = (A * A).sum()
loss.backward()
