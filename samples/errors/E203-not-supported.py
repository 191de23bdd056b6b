import torch

x = torch.ones(3, requires_grad=True)
y = torch.fft.fft(x)
