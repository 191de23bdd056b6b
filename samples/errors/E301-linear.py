import torch
import torch.nn.functional as F

weight = torch.ones(2, 4, requires_grad=True)
x = torch.ones(8, 3)
y = F.linear(x, weight)
