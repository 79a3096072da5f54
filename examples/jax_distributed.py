"""A jax.distributed script: one process a rank, on CPUs.

  systole run examples/jax_distributed.yaml --ranks 4
"""
import os

import jax
import numpy
from jax.experimental import multihost_utils

# The coordinator's address is found in JAX_COORDINATOR_ADDRESS.
jax.distributed.initialize(num_processes=int(os.environ["JAX_NUM_PROCESSES"]), process_id=int(os.environ["JAX_PROCESS_ID"]))
rank, ranks = jax.process_index(), jax.process_count()
gathered = multihost_utils.process_allgather(numpy.full((3,), float(rank)))
total = float(gathered.sum())
print(f"rank {rank} of {ranks}: {jax.device_count()} devices, sum {total:.1f}", flush=True)
assert total == 3 * sum(range(ranks))
jax.distributed.shutdown()
