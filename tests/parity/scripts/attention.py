import torch

x = torch.arange(24.0).sin().reshape(2, 3, 4)
w_query, w_key, w_value = (
    (torch.arange(16.0) * scale).cos().reshape(4, 4).requires_grad_()
    for scale in (0.3, 0.7, 1.1)
)
gain = torch.ones(4, requires_grad=True)

query, key, value = x @ w_query, x @ w_key, x @ w_value
scores = query @ key.transpose(1, 2) / 2.0
mixed = scores.softmax(dim=-1) @ value
centered = mixed - mixed.mean(dim=-1, keepdim=True)
variance = (centered * centered).mean(dim=-1, keepdim=True)
normed = centered / (variance + 1e-5).sqrt() * gain
loss = (normed * normed * normed).sum() + normed.max()
loss.backward()

results = [loss, w_query.grad, w_key.grad, w_value.grad, gain.grad]
