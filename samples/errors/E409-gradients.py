import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x * factor

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor


x = torch.ones(2, requires_grad=True)
Scale.apply(x, 3.0).sum().backward()
