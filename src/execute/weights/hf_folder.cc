#include "execute/weights/hf_folder.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "execute/checkpoint/ownership.h"
#include "execute/data/tokenizer_files.h"
#include "execute/train/state.h"
#include "execute/weights/gguf/gguf_model.h"
#include "execute/weights/gguf/gguf_tokenizer.h"
#include "execute/weights/hf_config.h"
#include "ground/base/errors.h"
#include "ground/base/files.h"
#include "ground/store/git_lfs.h"

namespace systole {
namespace {

constexpr const char* kPieces = "spiece.model";
constexpr const char* kOwnPieces = "tokenizer.model";  // Llama 2's, and that of an export of a model made here

Result<std::unique_ptr<Store>> open_folder(const std::string& path) {
  auto store = open_posix_store(path);
  if (store.ok() || store.error().kind == ErrorKind::io) return store;
  return std::move(store).error().hinted("name the folder of a Hugging Face model: config.json, *.safetensors");
}

constexpr const char* kGguf = ".gguf";
constexpr const char* kGgufChat = "tokenizer.chat_template";  // a key of its metadata

// A GGUF file and the store that it is in.
struct GgufPlace {
  std::string path, name;
  std::unique_ptr<Store> store;

  static Result<GgufPlace> of(const std::string& path) {
    const std::filesystem::path file(path);
    if (!path_exists(file)) {
      return error(ErrorKind::not_found, "there is no file '{}'", path)
          .hinted("name the GGUF file of a model, or the folder of a Hugging Face model");
    }
    const std::string parent = file.has_parent_path() ? file.parent_path().string() : ".";
    std::unique_ptr<Store> store = TRY(open_posix_store(parent));
    return GgufPlace{path, file.filename().string(), std::move(store)};
  }
  Result<GgufFile> open() const {
    Result<GgufFile> file = GgufFile::open(*store, name);
    return file.ok() ? std::move(file) : placed(std::move(file).error());
  }
  Error placed(Error error) const {
    if (error.kind != ErrorKind::io) error.where = {path};
    return error;
  }
};

// The same with its head, which takes long to read.
struct OpenGguf {
  GgufPlace place;
  GgufFile file;

  static Result<OpenGguf> at(const std::string& path) {
    GgufPlace place = TRY(GgufPlace::of(path));
    GgufFile file = TRY(place.open());
    return OpenGguf{std::move(place), std::move(file)};
  }
};

std::vector<ImportedValue> values_of(TokenizerFamily kind, const std::string& file) {
  return {{"data.tokenizer.kind", name_of(kind), false}, {"data.tokenizer.file", to_json(Node(file)), false}};
}

Result<std::vector<ImportedValue>> values_of_gguf(const OpenGguf& from) {
  const auto config = config_of_gguf(from.file);
  if (!config.ok()) return from.place.placed(config.error());
  std::vector<ImportedValue> values = TRY(values_of_config(*config, from.place.path));
  const auto family = tokenizer_family_of_gguf(from.file);
  if (!family.ok()) return from.place.placed(family.error());
  for (ImportedValue& value : values_of(*family, from.place.path)) values.push_back(std::move(value));
  return values;
}

// All of the folder but the check of its tensors.
Result<HfFolder> folder_of_gguf(OpenGguf from, const ModelSpec& model) {
  const auto config = config_of_gguf(from.file);
  if (!config.ok()) return from.place.placed(config.error());
  HfFolder folder;
  folder.path = from.place.path;
  folder.store = make_memory_store();
  TRY(write_whole(*folder.store, kHfConfig, *config));
  const auto chat = from.file.has(kGgufChat) ? from.file.text(kGgufChat) : Result<std::string>("");
  if (!chat.ok()) return from.place.placed(chat.error());
  if (!chat->empty()) TRY(write_whole(*folder.store, kHfChatTemplate, *chat));
  auto files = weights_of_gguf(std::move(from.file), *from.place.store, from.place.name);
  if (!files.ok()) return from.place.placed(std::move(files).error());
  folder.files = std::move(*files);
  folder.map = gguf_names(TRY(name_map(model)));
  folder.home = std::move(from.place.store);
  return folder;
}

Result<Tokenizer> tokenizer_of_gguf(const OpenGguf& from) {
  auto kept = tokenizer_of_gguf(from.file);
  if (!kept.ok()) return from.place.placed(std::move(kept).error());
  auto tokenizer = load_for_prompts(std::move(*kept));
  if (!tokenizer.ok()) return from.place.placed(std::move(tokenizer).error());
  return tokenizer;
}

Result<HfFolder> open_safetensors(const std::string& path, const ModelSpec& model) {
  HfFolder folder;
  folder.path = path;
  folder.store = TRY(open_folder(path));
  auto files = WeightFiles::open(*folder.store, "");
  if (!files.ok()) return below(path, std::move(files).error());
  folder.files = std::move(*files);
  folder.map = fitting(TRY(name_map(model)), folder.files);
  const auto config = read_text(*folder.store, kHfConfig, kLargestHfConfig);
  folder.head_is_embedding =
      folder.map.has_head() && !folder.files.tensors().contains(kHead) && config.ok() && head_may_be_embedding(*config);
  if (folder.head_is_embedding) folder.map = with_head_of_embedding(std::move(folder.map));
  return folder;
}

// The keys of the tokenizer beside the weights, if any.
Result<std::vector<ImportedValue>> values_of_tokenizer(Store& store, const std::string& folder, bool t5) {
  if (TRY(store.exists(kPieces)))
    return t5 ? values_of(TokenizerFamily::sentencepiece, folder + "/" + kPieces) : std::vector<ImportedValue>();
  for (const char* name : {"tokenizer.json", "vocab.json"}) {
    if (TRY(store.exists(name))) return values_of(TokenizerFamily::byte_level_bpe, folder);
  }
  if (TRY(store.exists(kOwnPieces))) return values_of(TokenizerFamily::sentencepiece, folder + "/" + kOwnPieces);
  return std::vector<ImportedValue>();
}

// Host buffers for parameters of a device whose memory the host cannot access, by value.
using Staged = std::map<int, std::vector<std::byte>>;

// The places of all parameters that a device holds, one per layer.
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
      // Parameters that the weights lack stay unchanged. The first read gives zeros, as in a new arena.
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

bool is_gguf(const std::string& path) { return path.ends_with(kGguf) && !is_folder(path); }

bool is_hf_folder(const std::string& path) {
  if (is_gguf(path)) return is_file(path);
  return !path.empty() && is_file(std::filesystem::path(path) / kHfConfig);
}

Result<std::string> hash_of_weights(const std::string& path) {
  if (is_gguf(path)) {
    const GgufPlace place = TRY(GgufPlace::of(path));
    return to_hex(TRY(WeightFiles(*place.store, place.name, {}, nullptr).hash()));
  }
  const std::unique_ptr<Store> store = TRY(open_posix_store(path));
  const auto files = WeightFiles::open(*store, "");
  if (!files.ok()) return below(path, files.error());
  return to_hex(TRY(files->hash()));
}

Result<std::vector<ImportedValue>> values_of_weights(const std::string& folder) {
  if (is_gguf(folder)) return values_of_gguf(TRY(OpenGguf::at(folder)));
  const std::unique_ptr<Store> store = TRY(open_folder(folder));
  if (!TRY(store->exists(kHfConfig))) {
    return error(ErrorKind::not_found, "the folder '{}' has no config.json", folder)
        .hinted("name the folder of a Hugging Face model: config.json, *.safetensors");
  }
  if (Status itself = refuse_lfs_pointer(*store, kHfConfig); !itself.ok())
    return below(folder, std::move(itself).error());
  std::vector<ImportedValue> values =
      TRY(values_of_config(TRY(read_text(*store, kHfConfig, kLargestHfConfig)), folder + "/" + kHfConfig));
  const bool t5 = std::any_of(values.begin(), values.end(), [](const ImportedValue& value) {
    return value.path == "model.family" && value.yaml == "t5";
  });
  for (ImportedValue& value : TRY(values_of_tokenizer(*store, folder, t5))) values.push_back(std::move(value));
  return values;
}

namespace {

// A workload with the model of `path`, whose files imply `values`.
Result<Workload> workload_with(std::vector<ImportedValue> values, const std::string& path) {
  values.push_back({"data.tokenizer.kind", name_of(TokenizerFamily::byte_level_bpe), false});
  values.push_back({"data.tokenizer.file", to_json(Node(path)), false});
  Node files = Node::sequence();
  files.push("none");
  const Node document = Node::map(
      {{"systole", 1},
       {"name", "imported"},
       {"model", Node::map({{"weights", path}})},
       {"data", Node::map({{"train", Node::map({{"files", std::move(files)}})}})},
       {"train", Node::map({{"batch", 1}, {"steps", 1}, {"optimizer", Node::map({{"kind", "sgd"}, {"rate", 1}})}})}});
  WorkloadOptions options;
  options.weights = [&](const std::string&) -> Result<std::vector<ImportedValue>> { return values; };
  Result<Workload> workload = workload_from(document, path, options);
  if (workload.ok()) return workload;
  Error bad = std::move(workload).error();  // its places are those of a document that nobody wrote
  bad.where = {path};
  for (Error& other : bad.others) other.where = {path};
  return bad;
}

Result<HfFolder> fitting_folder(HfFolder folder) {
  if (Status fits = check_weights(folder.files, folder.map); !fits.ok()) {
    Error wrong = std::move(fits).error();
    wrong.message = fmt::format("the weights in '{}' are not this model's: {}", folder.path, wrong.message);
    return wrong;
  }
  return folder;
}

}  // namespace

Result<Workload> workload_around(const std::string& folder) {
  return workload_with(TRY(values_of_weights(folder)), folder);
}

Result<HfFolder> open_hf_folder(const std::string& path, const ModelSpec& model) {
  return fitting_folder(
      TRY(is_gguf(path) ? folder_of_gguf(TRY(OpenGguf::at(path)), model) : open_safetensors(path, model)));
}

Result<HfModel> open_hf_model(const std::string& path) {
  if (!is_gguf(path)) {
    Workload workload = TRY(workload_around(path));
    HfFolder folder = TRY(open_hf_folder(path, workload.model));
    Tokenizer tokenizer = TRY(tokenizer_of(folder, workload.model));
    return HfModel{std::move(workload), std::move(folder), std::move(tokenizer)};
  }
  OpenGguf from = TRY(OpenGguf::at(path));
  Workload workload = TRY(workload_with(TRY(values_of_gguf(from)), path));
  Result<Tokenizer> tokenizer = tokenizer_of_gguf(from);
  HfFolder folder = TRY(fitting_folder(TRY(folder_of_gguf(std::move(from), workload.model))));
  if (!tokenizer.ok()) return std::move(tokenizer).error();
  return HfModel{std::move(workload), std::move(folder), *std::move(tokenizer)};
}

namespace {

Result<Tokenizer> read_kept(const HfFolder& folder) {
  auto bytes = read_tokenizer(*folder.store, "");
  if (!bytes.ok()) {
    Error bad = below(folder.path, std::move(bytes).error());
    if (bad.where.file.empty() && bad.kind != ErrorKind::io) bad.where.file = folder.path;
    return bad;
  }
  // A byte-level one may lack bytes that no prompt is likely to have.
  auto tokenizer =
      bytes->starts_with('{') ? Tokenizer::load_foreign(std::move(*bytes)) : Tokenizer::load(std::move(*bytes));
  if (!tokenizer.ok()) return std::move(tokenizer).error().at({folder.path});
  return tokenizer;
}

}  // namespace

Result<Tokenizer> tokenizer_of(const HfFolder& folder, const ModelSpec& model) {
  if (is_gguf(folder.path)) return tokenizer_of_gguf(TRY(OpenGguf::at(folder.path)));
  const bool t5 = model.task() == Task::pairs;
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

Result<std::string> read_any_tokenizer(Store& store, const std::string& path) {
  if (!path.ends_with(kGguf) || store.list(path).ok()) return read_tokenizer(store, path);
  return TRY(tokenizer_of_gguf(TRY(GgufFile::open(store, path)))).model;
}

Status load_weights(Executor& executor, const HfFolder& folder, std::int64_t device, bool some) {
  Staged staged;
  const std::vector<ParameterPlace> places = TRY(places_of(executor, device, staged));
  Status loaded = import_weights(folder.files, folder.map, places, some);
  if (!loaded.ok()) {
    if (!is_gguf(folder.path)) return below(folder.path, std::move(loaded).error());
    return std::move(loaded).error().at({folder.path});
  }
  for (const auto& [value, bytes] : staged) TRY(executor.write(value, 0, bytes));
  return {};
}

namespace {

// Whether rows and columns of the weight are those of the stored tensor, or some rows: its outputs are in one piece, in
// their order, behind the summed dims where the parameter is the tensor's transpose, and else before them.
bool is_stored_alike(const Int8Weight& weight, const MappedTensor& mapped) {
  const auto ndim = static_cast<int>(weight.order.size()), summed = ndim - weight.outputs;
  for (int i = 0; i < ndim; ++i) {
    const int dim = !mapped.turned ? i : i < weight.outputs ? summed + i : i - weight.outputs;
    if (weight.order[static_cast<std::size_t>(i)] != dim) return false;
  }
  return mapped.shape.size() == 2 && mapped.shape[0] % weight.rows() == 0 && mapped.shape[1] == weight.columns() &&
         mapped.columns == weight.columns();
}

bool has_copy(const HfFolder& folder) {
  return std::ranges::any_of(folder.map.copies,
                             [&](const std::string& copy) { return folder.files.tensors().contains(copy); });
}

}  // namespace

std::optional<StoredRows> stored_rows(const HfFolder& folder, const std::string& parameter, const Int8Weight& weight,
                                      std::int64_t device) {
  const auto mapped = std::ranges::find(folder.map.tensors, parameter, &MappedTensor::ours);
  if (mapped == folder.map.tensors.end() || !is_stored_alike(weight, *mapped)) return std::nullopt;
  // An import compares the embedding with its copies.
  if (mapped->theirs == folder.map.embedding && has_copy(folder)) return std::nullopt;
  StoredRows rows = folder.files.rows(mapped->theirs);
  const auto placed = [path = folder.path](Status read) -> Status {
    if (read.ok()) return read;
    return is_gguf(path) ? std::move(read).error().at({path}) : below(path, std::move(read).error());
  };
  const std::int64_t begin = mapped->shape[0] == weight.rows() ? 0 : device * weight.rows();
  StoredRows all{
      [placed, begin, numbers = std::move(rows.numbers)](std::int64_t first, std::int64_t last, const TakeRow& take) {
        return placed(numbers(begin + first, begin + last,
                              [&](std::int64_t row, std::span<const float> of_row) { take(row - begin, of_row); }));
      }};
  if (rows.groups) {
    all.groups = [placed, begin, groups = std::move(rows.groups)](std::int64_t first, std::int64_t last,
                                                                  std::span<Int4Block> into) {
      return placed(groups(begin + first, begin + last, into));
    };
  }
  all.together = rows.together;
  return all;
}

Result<std::vector<std::string>> write_hf_tokenizer(const Tokenizer& tokenizer, Store& to) {
  std::vector<std::string> written;
  TokenizerFiles files{{tokenizer.keeps_text() ? kOwnPieces : kPieces, tokenizer.model()}};
  if (tokenizer.family() != TokenizerFamily::sentencepiece) files = TRY(unbundle_tokenizer(tokenizer.model()));
  for (const auto& [name, text] : files) {
    TRY(write_whole(to, name, text));
    written.push_back(name);
  }
  return written;
}

}  // namespace systole
