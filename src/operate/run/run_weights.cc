#include "operate/run/run_weights.h"

#include <algorithm>

#include "execute/weights/checkpoint_source.h"
#include "execute/weights/hf_config.h"
#include "execute/weights/peft.h"
#include "ground/base/files.h"
#include "operate/observe/run_files.h"
#include "operate/run/run_tokenizer.h"

namespace systole {

Status store_initial_weights(Store& run, HfFolder& folder) {
  Node tensors = Node::map();
  for (const auto& [name, tensor] : folder.files.tensors()) tensors.set(name, name_of(tensor.dtype));
  const std::string path = TRY(absolute_path(folder.path)), hash = TRY(folder.hash()),
                    config = TRY(read_text(*folder.store, kHfConfig, kLargestHfConfig));
  const Node about = Node::map(
      {{"systole_weights", 1}, {"folder", path}, {"hash", hash}, {"config", config}, {"tensors", std::move(tensors)}});
  return write_whole(run, RunFiles::weights, to_json(about, 2) + "\n");
}

Result<std::optional<InitialWeights>> initial_weights(Store& run) {
  if (!TRY(run.exists(RunFiles::weights))) return std::optional<InitialWeights>();
  const Node about = TRY(parse_json(TRY(read_text(run, RunFiles::weights, kLargestHfConfig)), RunFiles::weights));
  if (TRY(TRY(about.get("systole_weights"))->as_int()) > 1) {
    return error(ErrorKind::unsupported, "this file was written by a newer Systole")
        .at({RunFiles::weights})
        .hinted("use the Systole that wrote it or a newer one");
  }
  InitialWeights kept;
  kept.folder = TRY(TRY(about.get("folder"))->as_string());
  kept.hash = TRY(TRY(about.get("hash"))->as_string());
  kept.config = TRY(TRY(about.get("config"))->as_string());
  for (const Node::Entry& entry : TRY(about.get("tensors"))->entries()) {
    const std::optional<DType> dtype = dtype_named(TRY(entry.value.as_string()));
    if (!dtype)
      return error(ErrorKind::corrupt, "'{}' is no type of a tensor", entry.value.text()).at(entry.value.where());
    kept.dtypes.emplace(entry.key, *dtype);
  }
  return std::optional<InitialWeights>(std::move(kept));
}

namespace {

// The tensor names as imported: with the prefix or without. Those of a GGUF file are no names of Hugging Face.
NameMap as_imported(NameMap map, const InitialWeights& kept) {
  const auto is_kept = [&](const MappedTensor& t) { return kept.dtypes.contains(t.theirs); };
  if (std::ranges::any_of(map.tensors, is_kept)) return map;
  NameMap bare = without_prefix(map);
  return std::ranges::any_of(bare.tensors, is_kept) ? bare : map;
}

}  // namespace

Result<ExportedFiles> export_hf_folder(const RunPlace& run, const checkpoint::Checkpoint& from, Store& to,
                                       ExportOptions options) {
  const Workload workload = TRY(workload_of(run));
  NameMap map = TRY(name_map(workload.model));
  const bool text = workload.data.kind == DataSpec::Kind::text;
  std::optional<Tokenizer> tokenizer;
  if (text) tokenizer = TRY(kept_tokenizer(run));
  std::string config = config_of(workload.model, text ? std::optional<std::int64_t>(tokenizer->eos()) : std::nullopt);
  if (const std::optional<InitialWeights> kept = TRY(initial_weights(*run.store))) {
    map = as_imported(std::move(map), *kept);
    options.dtypes = kept->dtypes;
    config = kept->config;
  }
  ExportedFiles files =
      TRY(export_weights(with_adapters(source_of(from), from, workload.model.adapters().scale), map, to, options));
  TRY(write_whole(to, kHfConfig, config));
  files.files.emplace_back(kHfConfig);
  if (text)
    for (std::string& name : TRY(write_hf_tokenizer(*tokenizer, to))) files.files.push_back(std::move(name));
  return files;
}

Result<ExportedFiles> export_peft_folder(const RunPlace& run, const checkpoint::Checkpoint& from, Store& to) {
  const Workload workload = TRY(workload_of(run));
  const std::optional<InitialWeights> kept = TRY(initial_weights(*run.store));
  if (!kept) {
    return error(ErrorKind::invalid, "'{}' did not begin from model.weights, which its adapters would stand beside",
                 run.path)
        .hinted("without --adapters the model is written, its adapters merged into it");
  }
  const NameMap map = TRY(name_map(workload.model));
  return export_adapters(source_of(from), map, to, {kept->folder, workload.model.adapters().scale, map.transposed});
}

}  // namespace systole
