import torch

x = torch.arange(6.0).reshape(2, 3)
mask = torch.tensor([True, False, True])
print(x[mask])
