import torch

x = torch.tensor([1.0, 2.0], requires_grad=True)
e = torch.exp(x)
e += 1
e.sum().backward()
