import torch
from torch.nn.functional import cross_entropy, relu

x = (torch.arange(40.0) * 1.3).sin().reshape(8, 5)
target = torch.tensor([0, 1, 2, 0, 1, 2, 2, 1])
shapes = [(5, 7), (7,), (7, 6), (6,), (6, 3), (3,)]
parameters = []
for i, shape in enumerate(shapes):
    flat = (torch.arange(100.0)[: 7 * 7] + i).cos()
    count = shape[0] * shape[-1] if len(shape) == 2 else shape[0]
    parameters.append((flat[:count].reshape(shape) * 0.5).clone().requires_grad_())

losses = []
for _ in range(3):
    w1, b1, w2, b2, w3, b3 = parameters
    hidden = relu(x @ w1 + b1)
    hidden = relu(hidden @ w2 + b2)
    loss = cross_entropy(hidden @ w3 + b3, target)
    loss.backward()
    losses.append(loss)
    with torch.no_grad():
        for parameter in parameters:
            parameter.sub_(0.1 * parameter.grad)
            parameter.grad.zero_()

results = [*losses, *parameters]
