#include "operate/run/served_model.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "describe/models/list.h"
#include "execute/backends/reference/reference.h"
#include "execute/train/state.h"
#include "execute/weights/bert_folder.h"
#include "execute/weights/hf_folder.h"
#include "execute/weights/packed_folder.h"
#include "execute/weights/pooling_files.h"
#include "ground/base/counted.h"
#include "ground/base/errors.h"
#include "ground/base/hash.h"
#include "ground/base/shell_quoted.h"
#include "ground/base/start_phases.h"
#include "ground/process/machine.h"
#include "ground/store/sha256.h"
#include "operate/registry/registry.h"
#include "operate/run/model_artifact.h"
#include "operate/run/run_tokenizer.h"

namespace systole {
namespace {

constexpr std::int64_t kUsualContext = 4096;  // of a published model, whose own context is often far longer

Result<ServedModel> model_of_run(const std::string& asked, std::int64_t part = 0) {
  const auto place = std::make_shared<CheckpointPlace>(TRY(find_checkpoints(asked)));
  const RunPlace run = TRY(open_run(parse_checkpoint_reference(asked).run));
  const Workload workload = TRY(workload_of(run));
  Tokenizer tokenizer = TRY(kept_tokenizer(run));
  const std::int32_t bos = tokenizer.bos();
  const checkpoint::Checkpoint from = TRY(open_checkpoint(*place));
  ServedModel served{make_model(workload.model),
                     workload.model,
                     workload.resources,
                     workload.train.precision.parameter,
                     std::move(tokenizer),
                     {bos},
                     from.manifest().step,
                     run.path,
                     [place, from, part](Executor& executor) { return load_parameters(executor, from, part); }};
  // Chunks are named by their contents.
  served.hash_of_weights = [from]() -> Result<std::string> {
    Hasher hasher;
    hasher.add(from.manifest().identity.model_hash);
    for (const checkpoint::ChunkFile& chunk : from.manifest().chunks) hasher.add(chunk.hash);
    return to_hex(hasher.digest());
  };
  served.checkpoints = place;
  return served;
}

Result<Node> read_node(Store& store, const std::string& folder, const std::string& name) {
  if (!TRY(store.exists(name))) return Node::map();
  return parse_json(TRY(read_text(store, name, kLargestHfConfig)), folder + "/" + name);
}

// chat_template.jinja, or of tokenizer_config.json the text or, of several by name, the default.
Result<std::optional<std::string>> chat_template_of(Store& store, const std::string& folder) {
  if (TRY(store.exists(kHfChatTemplate)))
    return std::optional(TRY(read_text(store, kHfChatTemplate, kLargestHfConfig)));
  const Node config = TRY(read_node(store, folder, "tokenizer_config.json"));
  const Node* found = config.find("chat_template");
  if (found == nullptr) return std::optional<std::string>();
  if (found->kind() == NodeKind::string) return std::optional(found->text());
  for (const Node& one : found->items()) {
    const Node *name = one.find("name"), *text = one.find("template");
    if (name != nullptr && name->text() == "default" && text != nullptr) return std::optional(text->text());
  }
  return std::optional<std::string>();
}

Result<std::vector<std::int32_t>> ends_of(Store& store, const std::string& folder, const Tokenizer& tokenizer) {
  const Node config = TRY(read_node(store, folder, "generation_config.json"));
  const Node* ids = config.find("eos_token_id");
  std::vector<std::int32_t> ends;
  if (ids == nullptr || ids->is_null()) return ends;
  const std::vector<Node> all =
      ids->is_sequence() ? std::vector<Node>(ids->items().begin(), ids->items().end()) : std::vector<Node>{*ids};
  for (const Node& id : all) {
    const auto token = static_cast<std::int32_t>(TRY(id.as_int(0, INT32_MAX)));
    if (token != tokenizer.eos()) ends.push_back(token);
  }
  return ends;
}

// What any published model has.
Result<ServedModel> model_of_weights(const std::string& path, const ModelSpec& spec, Tokenizer tokenizer,
                                     DType parameter, LoadSome load) {
  if (tokenizer.vocabulary() > spec.vocabulary()) {
    return error(ErrorKind::invalid, "the tokenizer in '{}' has {}, its model {}", path,
                 counted(tokenizer.vocabulary(), "token"), spec.vocabulary())
        .hinted("put the tokenizer there that the model was trained with");
  }
  std::vector<std::int32_t> before(tokenizer.before().begin(), tokenizer.before().end());
  return ServedModel{make_model(spec),  spec,         {},   parameter,      std::move(tokenizer),
                     std::move(before), std::nullopt, path, std::move(load)};
}

Result<ServedModel> model_of_weights(const std::string& path, const ModelSpec& spec,
                                     const std::shared_ptr<HfFolder>& folder, Tokenizer tokenizer,
                                     std::int64_t part = 0) {
  const LoadSome load = [folder, part](Executor& executor) { return load_weights(executor, *folder, part, true); };
  ServedModel served = TRY(model_of_weights(path, spec, std::move(tokenizer), DType::f32, load));
  served.stored_rows = [folder, part](const std::string& parameter, const Int8Weight& weight) {
    return stored_rows(*folder, parameter, weight, part);
  };
  served.hash_of_weights = [folder] { return folder->hash(); };
  return served;
}

// What the other files of the folder say.
Result<ServedModel> with_files(ServedModel served, Store& store, const std::string& path) {
  served.chat_template = TRY(chat_template_of(store, path));
  served.ends = TRY(ends_of(store, path, served.tokenizer));
  // Of those that cannot be followed a server says so only if vectors are asked of it: text needs none of this.
  if (const auto pooling = pooling_of(store); pooling.ok()) served.pooling = *pooling;
  return served;
}

Result<ServedModel> model_of_folder(const std::string& path, std::int64_t part) {
  HfModel model = TRY(open_hf_model(path));
  const auto folder = std::make_shared<HfFolder>(std::move(model.folder));
  ServedModel served = TRY(model_of_weights(path, model.workload.model, folder, std::move(model.tokenizer), part));
  served.resources = model.workload.resources;
  return with_files(std::move(served), *folder->store, path);
}

Result<ServedModel> model_of_packed(const std::string& path, std::int64_t part) {
  const auto packed = std::make_shared<PackedFolder>(TRY(open_packed_folder(path)));
  const Workload workload = TRY(workload_around(path));
  Tokenizer tokenizer = TRY(tokenizer_of(*packed, workload.model));
  const LoadSome load = [packed, part](Executor& executor) { return load_packed(executor, *packed, part); };
  ServedModel served = TRY(model_of_weights(path, workload.model, std::move(tokenizer), packed->parameter, load));
  served.hash_of_weights = [path]() -> Result<std::string> {
    const std::string weights = TRY(sha256_of_file(path + "/" + kPackedWeights));
    return weights + TRY(sha256_of_file(path + "/" + kHfConfig));
  };
  served.resources = workload.resources;
  return with_files(std::move(served), *packed->folder.store, path);
}

// Only vectors of texts are made of it.
Result<ServedModel> model_of_bert(const std::string& path) {
  const BertFolder bert = TRY(open_bert_folder(path));
  ModelSpec spec;
  spec.family = bert.model;
  ServedModel served = TRY(model_of_weights(path, spec, bert.folder, TRY(tokenizer_of(*bert.folder, spec))));
  auto pooling = pooling_of(*bert.folder->store);
  if (!pooling.ok()) return below(path, std::move(pooling).error());
  served.pooling = *pooling;
  return served;
}

bool is_published(const std::string& asked) { return is_bert_folder(asked) || is_gguf(asked) || is_hf_folder(asked); }

// "RUN" or "RUN@STEP", or the path of a published model.
Result<ServedModel> model_at(const std::string& asked, std::int64_t part) {
  if (is_packed_folder(asked)) return model_of_packed(asked, part);
  if (is_bert_folder(asked)) return model_of_bert(asked);
  return is_published(asked) ? model_of_folder(asked, part) : model_of_run(asked, part);
}

// A special token by its number; empty if it has no name.
std::string special_name(const Tokenizer& tokenizer, std::int32_t token) {
  for (const SpecialToken& special : tokenizer.specials()) {
    if (special.token == token) return special.name;
  }
  return {};
}

// The type of an engine's parameters where `asked` is wanted: the model's own, or i8 or kInt4. Errors: unsupported.
Result<DType> parameter_for(const ServedModel& model, DType asked) {
  if (!is_packed_type(asked) || asked == model.parameter) return model.parameter;
  if (!is_packed_type(model.parameter)) return asked;
  return error(ErrorKind::unsupported, "'{}' is packed in {}, of which no weights in {} are made", model.name,
               packed_name(model.parameter), packed_name(asked))
      .hinted("name the folder or the GGUF file that it was made of");
}

}  // namespace

bool ServedModel::encodes() const { return model->task() == Task::pairs; }

// Unk, bos and other special tokens, and padding rows of the embedding.
std::vector<std::int32_t> ServedModel::never_drawn(std::int64_t vocabulary) const {
  std::vector<std::int32_t> never;
  for (std::int32_t id = 0; id < tokenizer.vocabulary(); ++id) {
    if (tokenizer.bytes_of(id).empty() && id != tokenizer.eos()) never.push_back(id);
  }
  for (std::int64_t id = tokenizer.vocabulary(); id < vocabulary; ++id) never.push_back(static_cast<std::int32_t>(id));
  return never;
}

std::int64_t ServedModel::context_for(std::int64_t asked) const {
  const std::int64_t most = asked > 0 ? asked : step ? spec.context() : kUsualContext;
  return std::min(most, spec.context());
}

std::vector<std::int32_t> ServedModel::tokens_of(Encoder& encoder, std::string_view prompt) const {
  std::vector<std::int32_t> tokens;
  if (!encodes()) tokens = before;
  if (!encodes() && tokens.empty() && prompt.empty()) tokens.push_back(tokenizer.bos());
  encoder.encode(prompt, tokens);
  if (encodes()) tokens.push_back(tokenizer.eos());
  return tokens;
}

std::vector<std::int32_t> ServedModel::tokens_of_whole(Encoder& encoder, std::string_view text) const {
  std::vector<std::int32_t> tokens = before;
  encoder.encode(text, tokens);
  tokens.insert(tokens.end(), tokenizer.after().begin(), tokenizer.after().end());
  if (tokens.empty()) tokens.push_back(tokenizer.bos());
  return tokens;
}

std::string ServedModel::last_name() const {
  if (registered) return registered->name;
  const std::string path = name.substr(0, name.find_last_not_of('/') + 1);
  return path.substr(path.rfind('/') + 1);
}

Result<std::string> ServedModel::hash() const {
  const std::string pooled = pooling ? fmt::format("{} {}", name_of(pooling->pooling), pooling->normalize) : "";
  const std::string weights = TRY(hash_of_weights());
  Hasher hasher;
  hasher.add(fmt::format("{} {} {} {}\n", weights, to_hex(tokenizer.hash()), fmt::join(ends, ","), pooled));
  hasher.add(chat_template.value_or(""));
  return to_hex(hasher.digest());
}

ServedApi served_api(const ServedModel& model, const Engine& engine, std::string name,
                     std::optional<chat::ChatPrompt> chat, const std::optional<PoolingSpec>& pooling) {
  const auto encoder = std::make_shared<Encoder>(model.tokenizer);
  std::optional<ServedVectors> vectors;
  if (pooling) {
    vectors =
        ServedVectors{[&model, encoder](const std::string& text) { return model.tokens_of_whole(*encoder, text); },
                      *pooling, engine.hidden_size()};
  }
  return {std::move(name),
          model.tokenizer,
          [&model, encoder](const std::string& text) { return model.tokens_of(*encoder, text); },
          model.never_drawn(engine.vocabulary()),
          model.encodes(),
          engine.longest_prompt(),
          std::move(chat),
          model.ends,
          std::move(vectors),
          engine.generates()};
}

Result<std::optional<PoolingSpec>> pooling_for(const ServedModel& model, const std::string& asked, bool normalize) {
  if (model.model->hidden_size() == 0) return std::optional<PoolingSpec>();
  std::optional<PoolingSpec> pooling = model.pooling;
  if (!asked.empty()) {
    const std::optional<Pooling> known = pooling_named(asked);
    if (!known) return error(ErrorKind::invalid, "there is no pooling '{}'", asked).hinted("mean, last and cls are");
    pooling = PoolingSpec{*known, !pooling || pooling->normalize};
  }
  if (pooling && !normalize) pooling->normalize = false;
  return pooling;
}

Result<PoolingSpec> pooling_needed(const ServedModel& model, const std::string& asked, bool normalize) {
  if (model.model->hidden_size() == 0)
    return error(ErrorKind::unsupported, "a model of family '{}' has no vectors of texts", model.model->family())
        .hinted("use a bert, or a model that writes text: model.family: gpt or llama");
  const std::optional<PoolingSpec> pooling = TRY(pooling_for(model, asked, normalize));
  if (pooling) return *pooling;
  return error(ErrorKind::invalid, "'{}' does not say how the states of its tokens become one vector", model.name)
      .hinted("--pooling mean, last or cls: as the model was trained");
}

Result<ServedModel> find_model(const std::string& asked, std::int64_t part) {
  if (!names_registered_model(asked)) {
    ServedModel served = TRY(model_at(asked, part));
    served.part = part;
    return served;
  }
  RegisteredModel registered = TRY(find_registered(kRunsFolder, TRY(parse_model_reference(asked))));
  TRY(check_artifact(registered, checkpoint::Verify::lengths));  // opening a checkpoint verifies the contents
  ServedModel served = TRY(model_at(argument_of(registered), part));
  served.part = part;
  served.registered = std::move(registered);
  return served;
}

Result<ServedModel> find_model(const std::string& asked, const RunMessages& messages) {
  ServedModel served = TRY(find_model(asked));
  if (const std::optional<RegisteredModel>& model = served.registered)
    messages.notice(fmt::format("{} is {}, stage {}: {}", asked, model->id(), name_of(model->stage), model->source()));
  return served;
}

Result<ServedModel> find_blessed(const std::string& asked) {
  if (names_registered_model(asked) || is_published(asked) || parse_checkpoint_reference(asked).step)
    return find_model(asked);
  const CheckpointPlace place = TRY(find_checkpoints(asked));
  const std::vector<std::int64_t> blessed = TRY(checkpoint::list_blessed(place.folder));
  if (blessed.empty()) {
    return error(ErrorKind::not_found, "no checkpoint in '{}' is blessed", place.path)
        .hinted(fmt::format("systole ckpt bless{}{} marks the newest", asked.empty() ? "" : " ",
                            asked.empty() ? "" : shell_word(asked)));
  }
  return model_of_run(fmt::format("{}@{}", asked, std::ranges::max(blessed)));
}

Status load_engine(Engine& engine, const ServedModel& model, const LoadSome& load) {
  if (!is_packed_type(engine.options().parameter) || is_packed_type(model.parameter)) return load(engine.executor());
  const std::unique_ptr<Device> host = make_reference_device();
  return load_int8(engine, *model.model, model.parameter, load, *host, model.stored_rows);
}

Result<std::unique_ptr<Engine>> create_engine(const ServedModel& model, const Machine& machine, EngineOptions options) {
  options.parameter = TRY(parameter_for(model, options.parameter));
  options.cache = std::min(model.spec.context(), options.cache);
  return Engine::create(*model.model, *machine.device, options, model.part);
}

Result<std::unique_ptr<Engine>> open_engine(const ServedModel& model, const Machine& machine, EngineOptions options,
                                            StartPhases* phases) {
  std::unique_ptr<Engine> engine = TRY(create_engine(model, machine, std::move(options)));
  if (phases != nullptr) phases->end("compile");
  TRY(load_engine(*engine, model, model.load));
  return engine;
}

Result<std::optional<chat::ChatPrompt>> chat_of(const ServedModel& model, const std::optional<std::string>& other) {
  const std::optional<std::string>& text = other ? other : model.chat_template;
  if (!text) return std::optional<chat::ChatPrompt>();
  const Tokenizer& tokenizer = model.tokenizer;
  chat::ChatTemplate parsed = TRY(chat::ChatTemplate::parse(*text));
  return std::optional(chat::ChatPrompt(std::move(parsed), tokenizer, special_name(tokenizer, tokenizer.bos()),
                                        special_name(tokenizer, tokenizer.eos())));
}

MachineUse serving_use(const std::string& backend) {
  MachineUse use;
  use.exact = backend == "cpu";
  return use;
}

Result<Machine> machine_for(const ServedModel& model, const std::string& backend, Clock& clock, std::int64_t threads,
                            MachineUse use) {
  ResourcesSpec resources = model.resources;  // training may have used more cores than this machine has
  if (resources.threads) resources.threads = std::min<std::int64_t>(*resources.threads, allowed_cores());
  if (threads > 0) {
    TRY(check_threads(threads, "--threads"));
    resources.threads = threads;
  }
  use.exact = serving_use(backend).exact;
  return open_machine(backend, resources, clock, use);
}

}  // namespace systole
