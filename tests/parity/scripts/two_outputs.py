import torch

x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = torch.tensor([0.5, 0.25, 0.125], requires_grad=True)
shared = x * y
first = shared.exp().sum()
second = (shared - y).sin()

torch.autograd.backward(
    [second, first], [torch.tensor([1.0, 2.0, 3.0]), None], retain_graph=True
)
first.backward(retain_graph=True)
second.backward(torch.ones(3))

results = [first, second, x.grad, y.grad]
