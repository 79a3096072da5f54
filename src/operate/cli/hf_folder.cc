#include "operate/cli/hf_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "execute/checkpoint/ownership.h"
#include "execute/data/tokenizer_files.h"
#include "execute/train/state.h"
#include "execute/weights/hf_config.h"
#include "execute/weights/peft.h"
#include "ground/base/files.h"
#include "ground/store/git_lfs.h"
#include "operate/cli/run_tokenizer.h"
#include "operate/observe/run_files.h"

namespace systole::cli {
namespace {

constexpr const char* kConfig = "config.json";
constexpr const char* kPieces = "spiece.model";
constexpr const char* kOwnPieces = "tokenizer.model";  // Llama 2's, and what an export writes of a model made here
constexpr Bytes kLargestConfig = kMiB * 16;

Result<std::unique_ptr<Store>> open_folder(const std::string& path) {
  auto store = open_posix_store(path);
  if (store.ok() || store.error().kind == ErrorKind::io) return store;
  return std::move(store).error().hinted("name the folder of a Hugging Face model: config.json, *.safetensors");
}

// The keys of the tokenizer beside the weights, if there is one.
Result<std::vector<ImportedValue>> values_of_tokenizer(Store& store, const std::string& folder, bool t5) {
  const auto values = [](TokenizerFamily kind, const std::string& file) {
    return std::vector<ImportedValue>{{"data.tokenizer.kind", name_of(kind), false},
                                      {"data.tokenizer.file", to_json(Node(file)), false}};
  };
  if (TRY(store.exists(kPieces)))
    return t5 ? values(TokenizerFamily::sentencepiece, folder + "/" + kPieces) : std::vector<ImportedValue>();
  for (const char* name : {"tokenizer.json", "vocab.json"}) {
    if (TRY(store.exists(name))) return values(TokenizerFamily::byte_level_bpe, folder);
  }
  if (TRY(store.exists(kOwnPieces))) return values(TokenizerFamily::sentencepiece, folder + "/" + kOwnPieces);
  return std::vector<ImportedValue>();
}

// Parameters of a device whose memory is not the host's, by value, on their way to it.
using Staged = std::map<int, std::vector<std::byte>>;

// All parameters where they lie, each layer's by itself: what a device holds of them.
Result<std::vector<ParameterPlace>> places_of(Executor& executor, std::int64_t device, Staged& staged) {
  std::vector<ParameterPlace> places;
  const Mesh& mesh = executor.program().mesh;
  const std::vector<ProgramValue>& values = executor.program().values;
  for (int v = 0; v < static_cast<int>(values.size()); ++v) {
    const ProgramValue& value = values[static_cast<std::size_t>(v)];
    if (value.residence != Residence::parameter) continue;
    std::span<std::byte> bytes = executor.view(v, 0);
    if (bytes.empty()) {
      std::vector<std::byte>& stage = staged[v];
      stage.resize(static_cast<std::size_t>(value.type.bytes().count()));
      // What the weights do not have stays as it is. Nothing was written there yet: zeros, as in a new arena.
      (void)executor.read(v, 0, stage);
      bytes = stage;
    }
    const std::vector<std::string> names = tensor_names(value);
    const bool stacked = names.front() != value.name;
    const Type& whole = value.cut ? value.cut->whole : value.type;
    ParameterPlace place{"", whole.dtype, (stacked ? slice_type(whole) : whole).shape, {}};
    if (value.cut) {
      const Layout layout = stacked ? slice_layout(value.cut->layout) : value.cut->layout;
      const Sharding sharding = sharding_of(layout, static_cast<int>(place.shape.size()), mesh);
      const checkpoint::Box box = TRY(checkpoint::box_on(place.shape, sharding, mesh, device));
      const checkpoint::Box held = TRY(checkpoint::padded_box_on(place.shape, sharding, mesh, device));
      place.part = {box, held};
    }
    const std::size_t size = bytes.size() / names.size();
    for (std::size_t i = 0; i < names.size(); ++i) {
      place.name = names[i];
      place.bytes = bytes.subspan(i * size, size);
      places.push_back(place);
    }
  }
  return places;
}

}  // namespace

Result<std::string> HfFolder::hash() {
  if (!hash_) hash_ = to_hex(TRY(files.hash()));
  return *hash_;
}

bool is_hf_folder(const std::string& path) { return !path.empty() && is_file(std::filesystem::path(path) / kConfig); }

Result<std::vector<ImportedValue>> values_of_weights(const std::string& folder) {
  const std::unique_ptr<Store> store = TRY(open_folder(folder));
  if (!TRY(store->exists(kConfig))) {
    return error(ErrorKind::not_found, "the folder '{}' has no config.json", folder)
        .hinted("name the folder of a Hugging Face model: config.json, *.safetensors");
  }
  if (Status itself = refuse_lfs_pointer(*store, kConfig); !itself.ok())
    return below(folder, std::move(itself).error());
  std::vector<ImportedValue> values =
      TRY(values_of_config(TRY(read_text(*store, kConfig, kLargestConfig)), folder + "/" + kConfig));
  const bool t5 = std::any_of(values.begin(), values.end(), [](const ImportedValue& value) {
    return value.path == "model.family" && value.yaml == "t5";
  });
  for (ImportedValue& value : TRY(values_of_tokenizer(*store, folder, t5))) values.push_back(std::move(value));
  return values;
}

Result<Workload> workload_around(const std::string& folder) {
  const std::string text = fmt::format(
      "{{ systole: 1, name: imported, model: {{ weights: {} }}, data: {{ train: {{ files: [none] }} }}, "
      "train: {{ batch: 1, steps: 1, optimizer: {{ kind: sgd, rate: 1 }} }} }}",
      to_json(Node(folder)));
  WorkloadOptions options;
  options.weights = [](const std::string& path) -> Result<std::vector<ImportedValue>> {
    std::vector<ImportedValue> values = TRY(values_of_weights(path));
    values.push_back({"data.tokenizer.kind", name_of(TokenizerFamily::byte_level_bpe), false});
    values.push_back({"data.tokenizer.file", to_json(Node(path)), false});
    return values;
  };
  Result<Workload> workload = read_workload(text, folder, options);
  if (workload.ok()) return workload;
  Error bad = std::move(workload).error();
  bad.where = {};
  return bad;
}

Result<HfFolder> open_hf_folder(const std::string& path, const ModelSpec& model) {
  HfFolder folder;
  folder.path = path;
  folder.store = TRY(open_folder(path));
  auto files = WeightFiles::open(*folder.store, "");
  if (!files.ok()) return below(path, std::move(files).error());
  folder.files = std::move(*files);
  folder.map = fitting(TRY(name_map(model)), folder.files);
  const auto config = read_text(*folder.store, kConfig, kLargestConfig);
  folder.head_is_embedding =
      !model.tied && !folder.files.tensors().contains(kHead) && config.ok() && head_may_be_embedding(*config);
  if (folder.head_is_embedding) folder.map = with_head_of_embedding(std::move(folder.map));
  if (Status fits = check_weights(folder.files, folder.map); !fits.ok()) {
    Error wrong = std::move(fits).error();
    wrong.message = fmt::format("the weights in '{}' are not this model's: {}", path, wrong.message);
    return wrong;
  }
  return folder;
}

namespace {

Result<Tokenizer> read_kept(const HfFolder& folder) {
  auto bytes = read_tokenizer(*folder.store, "");
  if (!bytes.ok()) {
    Error bad = below(folder.path, std::move(bytes).error());
    if (bad.where.file.empty() && bad.kind != ErrorKind::io) bad.where.file = folder.path;
    return bad;
  }
  auto tokenizer = Tokenizer::load(std::move(*bytes));
  if (!tokenizer.ok()) return std::move(tokenizer).error().at({folder.path});
  return tokenizer;
}

}  // namespace

Result<Tokenizer> tokenizer_of(const HfFolder& folder, const ModelSpec& model) {
  const bool t5 = model.family == ModelSpec::Family::t5;
  if (t5 && TRY(folder.store->exists(kPieces))) {
    auto bytes = read_tokenizer(*folder.store, kPieces);
    if (!bytes.ok()) return below(folder.path, std::move(bytes).error());
    auto tokenizer = Tokenizer::load_foreign(std::move(*bytes));
    if (!tokenizer.ok()) return std::move(tokenizer).error().at({folder.path + "/" + kPieces});
    return tokenizer;
  }
  auto tokenizer = read_kept(folder);
  if (tokenizer.ok() || !t5 || tokenizer.error().kind == ErrorKind::corrupt) return tokenizer;
  Error bad = std::move(tokenizer).error();
  bad.hint = fmt::format("put {} beside config.json: it is published with every T5", kPieces);
  return bad;
}

Status load_weights(Executor& executor, const HfFolder& folder, std::int64_t device) {
  Staged staged;
  const std::vector<ParameterPlace> places = TRY(places_of(executor, device, staged));
  Status loaded = import_weights(folder.files, folder.map, places);
  if (!loaded.ok()) return below(folder.path, std::move(loaded).error());
  for (const auto& [value, bytes] : staged) TRY(executor.write(value, 0, bytes));
  return {};
}

Status keep_weights(Store& run, HfFolder& folder) {
  Node tensors = Node::map();
  for (const auto& [name, tensor] : folder.files.tensors()) tensors.set(name, name_of(tensor.dtype));
  const Node about = Node::map({{"systole_weights", 1},
                                {"folder", TRY(absolute_path(folder.path))},
                                {"hash", TRY(folder.hash())},
                                {"config", TRY(read_text(*folder.store, kConfig, kLargestConfig))},
                                {"tensors", std::move(tensors)}});
  return write_whole(run, RunFiles::weights, to_json(about, 2) + "\n");
}

Result<std::optional<KeptWeights>> kept_weights(Store& run) {
  if (!TRY(run.exists(RunFiles::weights))) return std::optional<KeptWeights>();
  const Node about = TRY(parse_json(TRY(read_text(run, RunFiles::weights, kLargestConfig)), RunFiles::weights));
  if (TRY(TRY(about.get("systole_weights"))->as_int()) > 1) {
    return error(ErrorKind::unsupported, "this file was written by a newer Systole")
        .at({RunFiles::weights})
        .hinted("use the Systole that wrote it or a newer one");
  }
  KeptWeights kept;
  kept.folder = TRY(TRY(about.get("folder"))->as_string());
  kept.hash = TRY(TRY(about.get("hash"))->as_string());
  kept.config = TRY(TRY(about.get("config"))->as_string());
  for (const Node::Entry& entry : TRY(about.get("tensors"))->entries()) {
    const std::optional<DType> dtype = dtype_named(TRY(entry.value.as_string()));
    if (!dtype)
      return error(ErrorKind::corrupt, "'{}' is no type of a tensor", entry.value.text()).at(entry.value.where());
    kept.dtypes.emplace(entry.key, *dtype);
  }
  return std::optional<KeptWeights>(std::move(kept));
}

namespace {

// The names that the weights came by: with the prefix or without.
NameMap as_imported(NameMap map, const KeptWeights& kept) {
  const bool named = std::any_of(map.tensors.begin(), map.tensors.end(),
                                 [&](const MappedTensor& t) { return kept.dtypes.contains(t.theirs); });
  return named ? map : without_prefix(std::move(map));
}

ParameterSource source_of(const checkpoint::Checkpoint& from) {
  const auto entry_of = [&from](const std::string& name) -> Result<const checkpoint::TensorEntry*> {
    for (const checkpoint::TensorEntry& tensor : from.manifest().tensors) {
      if (tensor.name == name) return &tensor;
    }
    return error(ErrorKind::not_found, "the checkpoint has no tensor '{}'", name);
  };
  ParameterSource source;
  source.dtype = [entry_of](const std::string& name) -> Result<DType> { return TRY(entry_of(name))->dtype; };
  source.shape = [entry_of](const std::string& name) -> Result<Shape> { return TRY(entry_of(name))->shape; };
  source.read = [&from](const std::string& name, const Shape& shape, std::span<std::byte> into) {
    return from.read(name, checkpoint::Box::whole(shape), into);
  };
  return source;
}

// The numbers of a tensor of a checkpoint.
Result<std::vector<double>> numbers_of(const checkpoint::Checkpoint& from, const checkpoint::TensorEntry& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.bytes().count()));
  TRY(from.read(tensor.name, checkpoint::Box::whole(tensor.shape), bytes));
  std::vector<double> numbers(static_cast<std::size_t>(num_elements(tensor.shape)));
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = load(tensor.dtype, bytes.data(), static_cast<std::int64_t>(i));
  return numbers;
}

// W + scale A B in place of W [in, out], where adapters A [in, rank] and B [rank, out] stand beside it.
ParameterSource with_adapters(ParameterSource source, const checkpoint::Checkpoint& from, double scale) {
  source.read = [&from, scale, read = source.read, dtype = source.dtype](const std::string& name, const Shape& shape,
                                                                         std::span<std::byte> into) -> Status {
    TRY(read(name, shape, into));
    const checkpoint::TensorEntry *a = from.manifest().find(name + ".lora_a"),
                                  *b = from.manifest().find(name + ".lora_b");
    if (a == nullptr || b == nullptr) return {};
    const std::vector<double> left = TRY(numbers_of(from, *a)), right = TRY(numbers_of(from, *b));
    const auto rank = static_cast<std::size_t>(a->shape.back());
    const std::size_t rows = left.size() / rank, columns = right.size() / rank;
    if (static_cast<std::int64_t>(rows * columns) != num_elements(shape))
      return error(ErrorKind::corrupt, "the adapters of '{}' are of another size", name);
    const DType type = TRY(dtype(name));
    std::vector<double> row(columns);
    for (std::size_t r = 0; r < rows; ++r) {
      const auto at = static_cast<std::int64_t>(r * columns);
      for (std::size_t c = 0; c < columns; ++c) row[c] = load(type, into.data(), at + static_cast<std::int64_t>(c));
      for (std::size_t k = 0; k < rank; ++k) {
        const double weight = scale * left[r * rank + k];
        for (std::size_t c = 0; c < columns; ++c) row[c] += weight * right[k * columns + c];
      }
      for (std::size_t c = 0; c < columns; ++c) store(type, into.data(), at + static_cast<std::int64_t>(c), row[c]);
    }
    return {};
  };
  return source;
}

Status write_tokenizer(const Tokenizer& tokenizer, Store& to, std::vector<std::string>& written) {
  TokenizerFiles files{{tokenizer.keeps_text() ? kOwnPieces : kPieces, tokenizer.model()}};
  if (tokenizer.family() == TokenizerFamily::byte_level_bpe) files = TRY(unbundle_tokenizer(tokenizer.model()));
  for (const auto& [name, text] : files) {
    TRY(write_whole(to, name, text));
    written.push_back(name);
  }
  return {};
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
  if (const std::optional<KeptWeights> kept = TRY(kept_weights(*run.store))) {
    map = as_imported(std::move(map), *kept);
    options.dtypes = kept->dtypes;
    config = kept->config;
  }
  ExportedFiles files =
      TRY(export_weights(with_adapters(source_of(from), from, workload.model.adapter_scale), map, to, options));
  TRY(write_whole(to, kConfig, config));
  files.files.emplace_back(kConfig);
  if (text) TRY(write_tokenizer(*tokenizer, to, files.files));
  return files;
}

Result<ExportedFiles> export_peft_folder(const RunPlace& run, const checkpoint::Checkpoint& from, Store& to) {
  const Workload workload = TRY(workload_of(run));
  const std::optional<KeptWeights> kept = TRY(kept_weights(*run.store));
  if (!kept) {
    return error(ErrorKind::invalid, "'{}' did not begin from model.weights, which its adapters would stand beside",
                 run.path)
        .hinted("without --adapters the model is written, its adapters merged into it");
  }
  return export_adapters(source_of(from), TRY(name_map(workload.model)), to,
                         {kept->folder, workload.model.adapter_scale, workload.model.family == ModelSpec::Family::gpt});
}

}  // namespace systole::cli
