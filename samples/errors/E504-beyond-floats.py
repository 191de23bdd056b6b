import torch
import torch.nn.functional as F

y = F.elu(torch.ones(2), 10**400)
