#include "execute/weights/pooling_files.h"

#include "ground/base/document.h"

namespace systole {
namespace {

constexpr const char* kModules = "modules.json";
constexpr const char* kPooling = "1_Pooling/config.json";
constexpr Bytes kLargest = kMiB;

Error refused(const std::string& what) {
  return error(ErrorKind::unsupported, "{}", what)
      .hinted("say --pooling mean, last or cls to take another than the model's");
}

Result<Node> read(Store& folder, const char* name) {
  auto node = parse_json(TRY(read_text(folder, name, kLargest)), name, {.depth = 16});
  if (node.ok()) return node;
  Error bad = std::move(node).error();
  bad.kind = ErrorKind::corrupt;
  return bad;
}

bool is_set(const Node& config, std::string_view key) {
  const Node* found = config.find(key);
  return found != nullptr && *found == Node(true);
}

// One of the modes that are set: {"pooling_mode_mean_tokens": true, …}, or {"pooling_mode": "mean"}.
Result<Pooling> pooling_in(const Node& config) {
  if (!config.is_map()) return config.wrong("a map");
  if (const Node* mode = config.find("pooling_mode"); mode != nullptr && mode->kind() == NodeKind::string) {
    const std::string name = mode->text() == "lasttoken" ? "last" : mode->text();
    if (const std::optional<Pooling> known = pooling_named(name)) return *known;
    return refused(fmt::format("its pooling is '{}'", mode->text()));
  }
  std::optional<Pooling> found;
  for (const auto& [key, pooling] :
       {std::pair("pooling_mode_mean_tokens", Pooling::mean), std::pair("pooling_mode_cls_token", Pooling::cls),
        std::pair("pooling_mode_lasttoken", Pooling::last)}) {
    if (!is_set(config, key)) continue;
    if (found) return refused("it joins several poolings");
    found = pooling;
  }
  for (const char* other :
       {"pooling_mode_max_tokens", "pooling_mode_mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens"}) {
    if (is_set(config, other)) return refused(fmt::format("it has {}", other));
  }
  if (!found) return error(ErrorKind::corrupt, "it names no pooling");
  return *found;
}

// Whether modules.json ends in one that normalizes. Errors: a module that changes vectors otherwise.
Result<bool> normalizes(Store& folder) {
  if (!TRY(folder.exists(kModules))) return true;
  const Node modules = TRY(read(folder, kModules));
  if (!modules.is_sequence()) return error(ErrorKind::corrupt, "it is no list").at({kModules});
  bool found = false;
  for (const Node& module : modules.items()) {
    const std::string path = module.text_at("type");
    const std::string name = path.substr(path.rfind('.') + 1);
    found = found || name == "Normalize";
    if (name != "Normalize" && name != "Transformer" && name != "Pooling")
      return refused(fmt::format("{}: the module '{}' is not followed", kModules, name));
  }
  return found;
}

}  // namespace

Result<std::optional<PoolingSpec>> pooling_of(Store& folder) {
  if (!TRY(folder.exists(kPooling))) return std::optional<PoolingSpec>();
  Result<Pooling> pooling = pooling_in(TRY(read(folder, kPooling)));
  if (!pooling.ok()) {
    Error bad = std::move(pooling).error();
    if (bad.kind == ErrorKind::invalid) bad.kind = ErrorKind::corrupt;
    return std::move(bad).at({kPooling});
  }
  return std::optional(PoolingSpec{*pooling, TRY(normalizes(folder))});
}

}  // namespace systole
