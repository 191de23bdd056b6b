import torch

total = torch.zeros(3)
total += torch.ones(2, 3)
