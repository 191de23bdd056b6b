import torch

# A PyTorch snippet runs as it is.
x = torch.tensor([2.0], requires_grad=True)
w = torch.tensor([3.0], requires_grad=True)
b = torch.tensor([1.0], requires_grad=True)

z = w * x + b
y_hat = torch.sigmoid(z)
loss = (1 - y_hat) ** 2
print("Forward pass output (loss):", loss.item())
print(loss.grad_fn)

loss.backward()
print("Gradient wrt w:", w.grad.item())
print("Gradient wrt b:", b.grad.item())
print("Gradient wrt x:", x.grad.item())
