import torch

count = 0
x = torch.ones(3) * (1 / count)
