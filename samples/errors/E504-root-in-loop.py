import torch

w = torch.ones(2)
for i in range(300):
    w = w + (1.5 - i * 0.01) ** 0.5
