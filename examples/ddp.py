"""A PyTorch DistributedDataParallel script as one writes it for torchrun; it runs on CPUs, over gloo.

  systole run examples/ddp.yaml --ranks 4
"""
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")  # rank, world size and address from the environment
rank, ranks = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.Generator().manual_seed(rank)  # each rank has its own rows
truth = torch.arange(16.0) / 16
for step in range(50):
    x = torch.randn(32, 16, generator=data)
    loss = ((model(x).squeeze(1) - x @ truth) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()  # gradients are averaged over the ranks here
    optimizer.step()
mean = loss.detach().clone()
dist.all_reduce(mean)
weights = model.module.weight.detach().clone()
total = weights.clone()
dist.all_reduce(total)
same = torch.allclose(total / ranks, weights)
print(f"rank {rank} of {ranks}: loss {mean.item() / ranks:.6f}, the same weights on all: {same}", flush=True)
dist.destroy_process_group()
