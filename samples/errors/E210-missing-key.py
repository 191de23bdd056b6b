import torch

settings = {"rate": 0.1, "steps": 3}
x = torch.tensor(settings["step"])
