import torch

a = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.tensor([3.0, 4.0], requires_grad=True)
with torch.no_grad():
    constant = (a * b).exp()
target = (a * b).detach()
b.requires_grad = False
difference = a * constant + b - target
assert not (b * 2.0).requires_grad
loss = torch.where(difference > 0, difference, -difference).sum()
loss.backward()
assert b.grad is None

results = [loss, a.grad]
