import torch

x = torch.tensor(2.0, requires_grad=True)
y = x * x
z = y + 1
z.backward()
z.backward()
