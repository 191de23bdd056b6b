import torch


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return 2 * x


x = torch.ones(2, requires_grad=True)
Double.apply(x).sum().backward()
