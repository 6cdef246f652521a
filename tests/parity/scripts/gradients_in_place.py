import torch

w = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
velocity = torch.zeros(3)
for step in range(4):
    loss = ((w - 1.0) ** 2).sum()
    loss.backward()
    with torch.no_grad():
        w.grad.mul_(0.5)
        w.grad += 0.01 * w
        velocity = 0.9 * velocity + w.grad
        w -= 0.1 * velocity
    if step % 2:
        w.grad.zero_()
    else:
        w.grad = None

results = [w, velocity]
