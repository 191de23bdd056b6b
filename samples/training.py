import torch

# Linear regression by hand-written gradient descent.
X = (
    torch.tensor([[73.0, 67.0, 43.0], [91.0, 88.0, 64.0], [87.0, 134.0, 58.0], [102.0, 43.0, 37.0]])
    / 100
)
y = torch.tensor([[56.0, 70.0], [81.0, 101.0], [119.0, 133.0], [22.0, 37.0]]) / 100
w = torch.zeros(2, 3, requires_grad=True)
b = torch.zeros(2, requires_grad=True)

for epoch in range(200):
    loss = ((X @ w.t() + b - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.3 * w.grad
        b -= 0.3 * b.grad
        w.grad.zero_()
        b.grad.zero_()
    if epoch % 50 == 0:
        print(f"epoch {epoch:3d}  loss {loss.item():.4f}")
print(w)
