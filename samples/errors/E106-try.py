import torch

try:
    x = torch.ones(2)
except ValueError:
    pass
