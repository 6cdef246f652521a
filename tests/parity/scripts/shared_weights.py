import torch

w = torch.arange(9.0).sin().reshape(3, 3).requires_grad_()
b = torch.ones(3, requires_grad=True)
x = torch.arange(6.0).cos().reshape(2, 3)

once = (x @ w + b).tanh()
twice = (once @ w + b).tanh()
loss = (twice * once).mean() + (w * w).sum() * 0.01
loss.backward()

results = [loss, w.grad, b.grad]
