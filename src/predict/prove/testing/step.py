# Writes jax_sharded.mlir (cut by the compiler, as shardings say) and jax_shard_map.mlir (cut by hand): pip install
# jax==0.10.2, python step.py.
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

jax.config.update("jax_num_cpu_devices", 4)
mesh = jax.make_mesh((4,), ("x",), axis_types=(AxisType.Auto,))

def loss(w, x):
    h = jnp.tanh(x @ w["up"])
    return ((h @ w["down"]) ** 2).mean()

def step(w, x):
    value, g = jax.value_and_grad(loss)(w, x)
    return jax.tree.map(lambda p, d: p - 0.1 * d, w, g), value

def per_device(w, x):
    value, g = jax.value_and_grad(loss)(w, x)
    g = jax.tree.map(lambda d: jax.lax.pmean(d, "x"), g)
    return jax.tree.map(lambda p, d: p - 0.1 * d, w, g), jax.lax.pmean(value, "x")

def of(shape, *axes):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*axes)))

def write(name, f, w, x):
    text = jax.jit(f, donate_argnums=0).lower(w, x).as_text(debug_info=True)
    open(name, "w").write(text)

write("jax_sharded.mlir", step, {"up": of((256, 512), None, "x"), "down": of((512, 128), "x", None)}, of((64, 256)))
write("jax_shard_map.mlir", jax.shard_map(per_device, mesh=mesh, in_specs=(P(), P("x")), out_specs=(P(), P()), check_vma=False),
      {"up": of((256, 512)), "down": of((512, 128))}, of((64, 256), "x"))
