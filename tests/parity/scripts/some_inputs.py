import torch

a = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.tensor([3.0, 4.0], requires_grad=True)
product = a * b
exponent = product.tanh().exp()
total = (exponent / b).sum()

total.backward(inputs=[a], retain_graph=True)
assert b.grad is None
total.backward(inputs=[b, product])
assert product.grad is not None

results = [a.grad, b.grad, product.grad]
