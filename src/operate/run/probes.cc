#include "operate/run/probes.h"

#include <algorithm>

#include "describe/ir/layer_names.h"
#include "describe/partition/probe.h"
#include "ground/base/document.h"
#include "ground/tensor/npy.h"
#include "ground/tensor/stats.h"

namespace systole {
namespace {

constexpr std::string_view kProbe = "probe/", kGradient = "gradient/";

// "blocks.{layer}.attn.q" → "blocks.3.attn.q"; "block.attn.norm" → "block.3.attn.norm".
std::string of_layer(const std::string& name, std::int64_t index) {
  if (const std::optional<LayerName> layers = layer_name(name)) return layers->of(index);
  return Probeable{name.substr(6), 1}.at(index);
}

bool matches(const std::vector<std::string>& globs, const std::string& name) {
  return std::any_of(globs.begin(), globs.end(), [&name](const std::string& glob) { return glob_matches(glob, name); });
}

}  // namespace

Probes::Probes(const ProbeSpec& spec, Executor& executor, Store& folder, std::function<void(const std::string&)> told)
    : spec_(spec), executor_(executor), folder_(folder), told_(std::move(told)) {
  const std::vector<ProgramValue>& values = executor.program().values;
  for (std::size_t v = 0; v < values.size(); ++v) {
    const std::string& name = values[v].name;
    const auto index = static_cast<int>(v);
    const bool layered = layer_name(name).has_value();
    if (name.starts_with(kProbe)) {
      const std::string own = name.substr(kProbe.size());
      add(own, index, own.starts_with("block."), "");
    } else if (values[v].residence == Residence::parameter) {
      add(name, index, layered, "parameters");
    } else if (name.starts_with(kGradient)) {
      add(name, index, layered, "gradients");
    }
  }
}

void Probes::add(const std::string& name, int value, bool stacked, const std::string& group) {
  const Type& type = executor_.program().values[static_cast<std::size_t>(value)].type;
  for (std::int64_t i = 0; i < (stacked ? type.size(0) : 1); ++i) {
    const std::string own = stacked ? of_layer(name, i) : name;
    const auto named = [&](const std::vector<std::string>& globs) {
      return matches(globs, own) || std::ranges::find(globs, group) != globs.end();
    };
    const bool asked = named(spec_.values), saved = named(spec_.save);
    if (asked || saved) shown_.push_back({own, value, stacked ? i : -1, saved});
  }
}

Status Probes::show(const Shown& shown, std::int64_t step, std::string& lines) {
  const Type& type = executor_.program().values[static_cast<std::size_t>(shown.value)].type;
  const std::span<const std::byte> bytes = executor_.view(shown.value, 0);
  const std::byte* data = bytes.data();
  Shape shape = type.shape;
  std::int64_t count = type.num_elements();
  if (shown.index >= 0) {
    count /= type.size(0);
    shape.erase(shape.begin());
    data += shown.index * count * size_of(type.dtype);
  }
  const TensorStats s = stats_of(type.dtype, data, count);
  told_(fmt::format("step {}  {:<28}  {}{}  {}  mean {:.4g}  std {:.4g}  rms {:.4g}", step, shown.name,
                    systole::name_of(type.dtype), to_string(shape), range_text(s), s.mean, s.deviation, s.rms));
  const Node record = Node::map({{"step", step},
                                 {"name", shown.name},
                                 {"dtype", systole::name_of(type.dtype)},
                                 {"count", s.count},
                                 {"nan", s.nans},
                                 {"infinite", s.infinities},
                                 {"min", s.low},
                                 {"max", s.high},
                                 {"mean", s.mean},
                                 {"std", s.deviation},
                                 {"rms", s.rms}});
  lines += to_json(record) + "\n";
  if (!shown.saved) return {};
  std::string leaf = shown.name;
  std::replace(leaf.begin(), leaf.end(), '/', '.');
  const std::string dir = fmt::format("probes/{}", step);
  TRY(make_dirs_synced(folder_, dir));
  return write_whole(folder_, dir + "/" + leaf + ".npy", npy_bytes(type.dtype, shape, data));
}

Status Probes::after_step(std::int64_t step) {
  if (shown_.empty() || step % spec_.every.value_or(10) != 0) return {};
  std::string lines;
  for (const Shown& shown : shown_) TRY(show(shown, step, lines));
  TRY(make_dirs_synced(folder_, "probes"));
  return write_whole(folder_, fmt::format("probes/{}.jsonl", step), lines);
}

}  // namespace systole
