import torch


def line(x, slope, offset):
    return slope * x + offset


y = line(torch.ones(2), 3.0)
