import torch

try:
    x = torch.onse(2)
except AttributeError:
    x = torch.ones(2)
