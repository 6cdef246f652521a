import torch

x = torch.arange(24.0).sin().requires_grad_()
cube = x.view(2, 3, 4)
left, right = cube[0], cube[1]
corner = cube[:, 1:, ::2]
picked = cube[1, torch.tensor([0, 2, 2])]
column = cube[..., -1].transpose(0, 1)
positive = x[x > 0]

total = (left @ right.T).sum()
total = total + corner.reshape(-1).sum() * 2.0 + picked.sum(dim=0).max()
total = total + (column * column).mean() + positive.sum()
total = total + torch.cat([left, right]).flatten()[5:7].sum()
total = total + cube.permute(2, 0, 1).unsqueeze(0).squeeze(0).sum(0)[1].sum()
total.backward()

results = [total, x.grad]
