import torch

x = torch.arange(4.0).requires_grad_()
y = (x * x).sum()
for _ in range(3):
    y.backward(retain_graph=True)
held = x.grad
y.backward()
assert x.grad is held

message = ""
try:
    y.backward()
except RuntimeError as error:
    message = str(error)
assert message.startswith("Trying to backward through the graph a second time")

z = (x + 1.0).sum()
z.backward()
z.backward()  # what saved nothing may run again

results = [x.grad]
