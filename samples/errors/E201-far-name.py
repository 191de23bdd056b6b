import torch

x = torch.ones(3, requires_grad=True)
loss = (x * weights).sum()
