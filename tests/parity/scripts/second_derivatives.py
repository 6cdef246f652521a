import torch

x = torch.tensor([0.5, 1.0, 1.5], requires_grad=True)
y = (x.sin() * x * x).sum()
(first,) = torch.autograd.grad(y, x, create_graph=True)
penalty = (first * first).sum()

results = [first, *torch.autograd.grad(penalty, x)]
