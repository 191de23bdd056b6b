import torch


def residual(prediction, target):
    return prediction - target


prediction = torch.ones(5, 3, requires_grad=True)
target = torch.zeros(5, 4)
loss = residual(prediction, target).pow(2).mean()
