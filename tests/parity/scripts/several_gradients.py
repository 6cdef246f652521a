import torch

a = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.tensor([3.0, 4.0], requires_grad=True)
unused = torch.tensor([5.0], requires_grad=True)
u = a * b
v = u.sin() + a
w = (u * v).sum()

grad = torch.autograd.grad
results = [*grad(w, (a, b, u), retain_graph=True)]
results += grad((v, w), (u, a), (torch.ones(2), None), retain_graph=True)
results += grad(w, (a, unused), retain_graph=True, allow_unused=True)[:1]
results += grad(w, v)
assert a.grad is None
