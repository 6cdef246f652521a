import torch

seen = []
a = torch.tensor([1.0, 2.0], requires_grad=True)
b = a * 3.0
c = b.exp()
b.register_hook(lambda grad: grad * 2.0)
b.register_hook(seen.append)
handle = a.register_hook(seen.append)
b.retain_grad()
c.sum().backward(retain_graph=True)
handle.remove()
c.sum().backward()

results = [*seen, a.grad, b.grad]
