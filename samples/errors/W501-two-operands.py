import torch
import torch.nn.functional as F

p = torch.tensor([2.0, 3.0], requires_grad=True)
loss = F.kl_div(torch.log(p), torch.log(p) - 2, reduction="sum")
