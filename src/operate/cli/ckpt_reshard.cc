// `systole ckpt reshard RUN@STEP --mesh "data=8"`: rewrites a checkpoint in the shards of another mesh. `systole ckpt
// public-key REFERENCE`: the public key to verify a signature.

#include "operate/cli/ckpt_reshard.h"

#include "execute/checkpoint/reshard.h"
#include "execute/checkpoint/sharding_rules.h"
#include "ground/base/counted.h"
#include "ground/base/parallel.h"
#include "ground/base/units.h"
#include "operate/run/run_places.h"

namespace systole::cli {
namespace {

struct ReshardOptions {
  std::string run, mesh;
  std::vector<std::string> shardings;
  checkpoint::KeyRefs keys;
};

ExitCode ckpt_reshard(const ReshardOptions& options, Context& context) {
  const CheckpointPlace place = find_checkpoints(options.run, options.keys).value();
  const Mesh mesh = Mesh::parse(options.mesh).value();
  const std::vector<checkpoint::ShardingRule> rules = checkpoint::read_sharding_rules(options.shardings).value();
  const std::unique_ptr<FileLock> lock = lock_home(place).value();  // no run writes to it meanwhile
  const checkpoint::Checkpoint from = open_checkpoint(place).value();
  checkpoint::SaveOptions saving;
  saving.threads = io_threads();
  saving.compress = true;
  const auto report = checkpoint::reshard(
      from, mesh,
      [&](const checkpoint::TensorEntry& tensor) -> Result<Sharding> {
        return checkpoint::sharding_by(rules, tensor, mesh);
      },
      saving);
  if (!report.ok()) fail(told_in(place, report.error()));
  const std::int64_t step = from.manifest().step;
  context.out.data(fmt::format("step {}: {}, were {}; the {} of {} read {}, would have read {}\n", step,
                               counted(report->chunks_after, "chunk file"), report->chunks_before,
                               counted(mesh.num_devices(), "rank"), options.mesh.empty() ? "one device" : options.mesh,
                               counted(report->reads_after, "piece"), report->reads_before));
  context.out.json(Node::map({{"folder", place.path},
                              {"step", step},
                              {"chunks_before", report->chunks_before},
                              {"chunks", report->chunks_after},
                              {"reads_before", report->reads_before},
                              {"reads", report->reads_after},
                              {"bytes_written", report->written.count()}}));
  return ExitCode::done;
}

struct PublicKeyOptions {
  std::string reference;
};

ExitCode ckpt_public_key(const PublicKeyOptions& options, Context& context) {
  const std::shared_ptr<const checkpoint::Keys> keys = checkpoint::read_keys({"", options.reference, ""}).value();
  const std::string key = checkpoint::to_hex_text(*keys->trusted);
  context.out.data(key + "\n");
  context.out.json(Node::map({{"public_key", key}}));
  return ExitCode::done;
}

}  // namespace

void add_key_options(Subcommand command, checkpoint::KeyRefs& keys) {
  command.add_option("--encryption-key", keys.encryption,
                     "env:NAME or file:PATH: the key it is encrypted with; without: what the run's workload says");
  command.add_option("--trusted-key", keys.trusted,
                     "only what this public key signed is read; without: the workload's");
}

void add_ckpt_reshard(Subcommand group, Context& context) {
  auto options = std::make_shared<ReshardOptions>();
  Subcommand command = add_command(group, "reshard", "rewrite one as the ranks of another mesh will read it", options,
                                   context, ckpt_reshard);
  command.add_option("run", options->run, "RUN@STEP, as for the others; without @STEP: the newest").required();
  command.add_option("--mesh", options->mesh, "axes of the mesh that will read it, as \"data=4 model=2\"").required();
  command.add_option("--sharding", options->shardings,
                     "TENSORS=SHARDING, as blocks.*.mlp.up={}{model}; may be repeated, the first that matches counts; "
                     "without: the first dim is cut along all axes");
  add_key_options(command, options->keys);
}

void add_ckpt_public_key(Subcommand group, Context& context) {
  auto options = std::make_shared<PublicKeyOptions>();
  Subcommand command = add_command(group, "public-key", "the public key of a signing key, for checkpoint.trusted_key",
                                   options, context, ckpt_public_key);
  command.add_option("key", options->reference, "env:NAME or file:PATH, where the signing key stands").required();
}

}  // namespace systole::cli
