import torch

x = torch.tensor(2.0, requires_grad=True)
w = torch.tensor(3.0, requires_grad=True)
loss = x**2
g = torch.autograd.grad(loss, [x, w])
