import torch

x = torch.ones(2, 2, requires_grad=True)
h = x * 3
y = h * h
h[0].zero_()
y.sum().backward()
