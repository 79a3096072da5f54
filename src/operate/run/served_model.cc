#include "operate/run/served_model.h"

#include <algorithm>

#include "describe/models/list.h"
#include "execute/backends/reference/reference.h"
#include "execute/train/state.h"
#include "execute/weights/bert_folder.h"
#include "execute/weights/hf_folder.h"
#include "execute/weights/pooling_files.h"
#include "ground/base/counted.h"
#include "ground/base/errors.h"
#include "ground/base/number_from.h"
#include "ground/process/machine.h"
#include "operate/run/run_places.h"
#include "operate/run/run_tokenizer.h"

namespace systole {
namespace {

constexpr std::int64_t kUsualContext = 4096;  // of a published model, whose own context is often far longer

Result<ServedModel> model_of_run(const std::string& asked) {
  const auto place = std::make_shared<CheckpointPlace>(TRY(find_checkpoints(asked)));
  const RunPlace run = TRY(open_run(parse_checkpoint_reference(asked).run));
  const Workload workload = TRY(workload_of(run));
  Tokenizer tokenizer = TRY(kept_tokenizer(run));
  const std::int32_t bos = tokenizer.bos();
  const checkpoint::Checkpoint from = TRY(open_checkpoint(*place));
  return ServedModel{make_model(workload.model),
                     workload.model,
                     workload.resources,
                     workload.train.precision.parameter,
                     std::move(tokenizer),
                     {bos},
                     from.manifest().step,
                     run.path,
                     [place, from](Executor& executor) { return load_parameters(executor, from); }};
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

// What the folder of any published model has.
Result<ServedModel> model_of_weights(const std::string& path, const ModelSpec& spec,
                                     const std::shared_ptr<HfFolder>& folder) {
  Tokenizer tokenizer = TRY(systole::tokenizer_of(*folder, spec));
  if (tokenizer.vocabulary() > spec.vocabulary()) {
    return error(ErrorKind::invalid, "the tokenizer in '{}' has {}, its model {}", path,
                 counted(tokenizer.vocabulary(), "token"), spec.vocabulary())
        .hinted("put the tokenizer there that the model was trained with");
  }
  std::vector<std::int32_t> before(tokenizer.before().begin(), tokenizer.before().end());
  return ServedModel{make_model(spec),
                     spec,
                     {},
                     DType::f32,
                     std::move(tokenizer),
                     std::move(before),
                     std::nullopt,
                     path,
                     [folder](Executor& executor) { return load_weights(executor, *folder, 0, true); }};
}

Result<ServedModel> model_of_folder(const std::string& path) {
  const Workload workload = TRY(workload_around(path));
  const auto folder = std::make_shared<HfFolder>(TRY(open_hf_folder(path, workload.model)));
  ServedModel served = TRY(model_of_weights(path, workload.model, folder));
  served.resources = workload.resources;
  served.chat_template = TRY(chat_template_of(*folder->store, path));
  served.ends = TRY(ends_of(*folder->store, path, served.tokenizer));
  // Of those that cannot be followed a server says so only if vectors are asked of it: text needs none of this.
  if (const auto pooling = pooling_of(*folder->store); pooling.ok()) served.pooling = *pooling;
  return served;
}

// Only vectors of texts are made of it.
Result<ServedModel> model_of_bert(const std::string& path) {
  const BertFolder bert = TRY(open_bert_folder(path));
  ModelSpec spec;
  spec.family = bert.model;
  ServedModel served = TRY(model_of_weights(path, spec, bert.folder));
  auto pooling = pooling_of(*bert.folder->store);
  if (!pooling.ok()) return below(path, std::move(pooling).error());
  served.pooling = *pooling;
  return served;
}

// A special token by its number; empty if it has no name.
std::string special_name(const Tokenizer& tokenizer, std::int32_t token) {
  for (const SpecialToken& special : tokenizer.specials()) {
    if (special.token == token) return special.name;
  }
  return {};
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

Result<ServedModel> find_model(const std::string& asked) {
  if (is_bert_folder(asked)) return model_of_bert(asked);
  return is_gguf(asked) || is_hf_folder(asked) ? model_of_folder(asked) : model_of_run(asked);
}

Result<std::unique_ptr<Engine>> open_engine(const ServedModel& model, const Machine& machine, EngineOptions options) {
  const bool int8 = options.parameter == DType::i8;
  if (!int8) options.parameter = model.parameter;
  options.cache = std::min(model.spec.context(), options.cache);
  std::unique_ptr<Engine> engine = TRY(Engine::create(*model.model, *machine.device, options));
  if (int8) {
    const std::unique_ptr<Device> host = make_reference_device();
    TRY(load_int8(*engine, *model.model, model.parameter, model.load, *host));
  } else {
    TRY(model.load(engine->executor()));
  }
  return engine;
}

Result<std::optional<chat::ChatPrompt>> chat_of(const ServedModel& model, const std::optional<std::string>& other) {
  const std::optional<std::string>& text = other ? other : model.chat_template;
  if (!text) return std::optional<chat::ChatPrompt>();
  const Tokenizer& tokenizer = model.tokenizer;
  return std::optional(chat::ChatPrompt(TRY(chat::ChatTemplate::parse(*text)), tokenizer,
                                        special_name(tokenizer, tokenizer.bos()),
                                        special_name(tokenizer, tokenizer.eos())));
}

MachineUse serving_use(const std::string& backend) {
  MachineUse use;
  use.exact = backend == "cpu";
  return use;
}

Result<std::int64_t> drafts_for(const std::string& asked, const std::string& backend) {
  if (asked.empty()) return 0;
  constexpr std::int64_t kUsual = 7, kMost = 31;  // 7: with the last token, eight rows
  const std::size_t colon = std::min(asked.find(':'), asked.size());
  const std::optional<std::int64_t> drafts =
      colon == asked.size() ? kUsual : number_from<std::int64_t>(std::string_view(asked).substr(colon + 1));
  if (asked.substr(0, colon) != "ngram" || !drafts || *drafts < 1 || *drafts > kMost) {
    return error(ErrorKind::invalid, "--speculate: '{}' is neither ngram nor ngram:K with K from 1 to {}", asked, kMost)
        .hinted(fmt::format("--speculate ngram:{}", kUsual));
  }
  if (backend == "cpu" || backend == "reference") return *drafts;
  return error(ErrorKind::unsupported,
               "--speculate: on {} the bits of an answer depend on how many tokens are computed together", backend)
      .hinted("leave it out, or compute with --backend cpu");
}

Result<Machine> machine_for(const ServedModel& model, const std::string& backend, Clock& clock, std::int64_t threads) {
  ResourcesSpec resources = model.resources;  // training may have used more cores than this machine has
  if (resources.threads) resources.threads = std::min<std::int64_t>(*resources.threads, allowed_cores());
  if (threads > 0) {
    TRY(check_threads(threads, "--threads"));
    resources.threads = threads;
  }
  return open_machine(backend, resources, clock, serving_use(backend));
}

}  // namespace systole
