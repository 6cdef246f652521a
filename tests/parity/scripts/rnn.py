import torch

size = 4
w_in = (torch.arange(12.0).reshape(3, size) * 0.7).sin().requires_grad_()
w_hidden = (torch.arange(16.0).reshape(size, size) * 0.3).cos().requires_grad_()
bias = torch.zeros(size, requires_grad=True)
inputs = torch.arange(36.0).reshape(6, 2, 3).sin()

hidden = torch.zeros(2, size)
losses = []
for x in inputs:
    hidden = (x @ w_in + hidden @ w_hidden + bias).tanh()
    losses.append((hidden * hidden).sum())
loss = torch.stack(losses).mean()
loss.backward()

results = [loss, w_in.grad, w_hidden.grad, bias.grad]
