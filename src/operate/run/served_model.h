#pragma once
// A model to serve: from a run's checkpoint, or from a Hugging Face model folder, a GGUF file or a packed folder, with
// its tokenizer; by its place or by its name in the registry.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "describe/models/model.h"
#include "describe/spec/pooling.h"
#include "describe/spec/workload.h"
#include "execute/data/tokenizer.h"
#include "execute/serve/api_routes.h"
#include "execute/serve/chat/chat_prompt.h"
#include "execute/serve/engine.h"
#include "execute/serve/int8_loader.h"
#include "operate/registry/registered_model.h"
#include "operate/run/machine.h"
#include "operate/run/run_messages.h"
#include "operate/run/run_places.h"

namespace systole {

class StartPhases;

struct ServedModel {
  std::unique_ptr<const Model> model;
  ModelSpec spec;
  ResourcesSpec resources;
  DType parameter = DType::f32;  // i8, kInt4: of a packed folder
  Tokenizer tokenizer;
  std::vector<std::int32_t> before;                // tokens at the start of each text
  std::optional<std::int64_t> step;                // of the checkpoint; nothing: a published model
  std::string name;                                // for people: the run, or the folder
  LoadSome load;                                   // the parameters that an executor has
  FindRows stored_rows = {};                       // of a published model: matrices as its files have them
  std::optional<std::string> chat_template = {};   // of a published model: the text
  std::vector<std::int32_t> ends = {};             // tokens that end an answer beside eos: generation_config.json
  std::optional<PoolingSpec> pooling = {};         // of a published model: how its files make vectors of texts
  std::optional<RegisteredModel> registered = {};  // if it was found by its registered name
  std::function<Result<std::string>()> hash_of_weights = {};  // and config; reads the files of a published model
  std::shared_ptr<const CheckpointPlace> checkpoints = {};    // of a run
  std::int64_t part = 0;                                      // that its engine has, with EngineOptions::parts

  bool encodes() const;  // it encodes the prompt and answers it; otherwise it continues the prompt
  std::vector<std::int32_t> never_drawn(std::int64_t vocabulary) const;  // tokens that stand for no text, except eos
  // The tokens of a sequence where `asked` are wanted. 0: as many as the model's context has, of a published model at
  // most 4096.
  std::int64_t context_for(std::int64_t asked) const;
  // A prompt as in the model's training rows: a document begins with `before`, the input of a pair ends with eos.
  // `encoder`: of this tokenizer; one for many texts, because each clears a cache of 4 MiB first.
  std::vector<std::int32_t> tokens_of(Encoder& encoder, std::string_view prompt) const;
  // A whole text, for its vector: with the tokens that the model's files put before and after every text.
  std::vector<std::int32_t> tokens_of_whole(Encoder& encoder, std::string_view text) const;
  std::string last_name() const;  // what requests may call the model by: its registered name, or of the path `name`
  // Of all that its answers depend on, beside a device's rounding: weights, tokenizer, chat template, ends, pooling.
  // Errors: io.
  Result<std::string> hash() const;
};

// The model as requests see it. The model must outlive it. `chat`, `pooling`: as ServedApi.
ServedApi served_api(const ServedModel& model, const Engine& engine, std::string name,
                     std::optional<chat::ChatPrompt> chat, const std::optional<PoolingSpec>& pooling);

// How the model's vectors are made: as `asked` (mean, last or cls), or if that is empty as its files say; `normalize`
// false: never normalized. Nothing: neither says it, or such a model has none. Errors: invalid: no such pooling.
Result<std::optional<PoolingSpec>> pooling_for(const ServedModel& model, const std::string& asked, bool normalize);

// The same where vectors are to be made. Errors also: invalid: neither says how; unsupported: such a model has none.
Result<PoolingSpec> pooling_needed(const ServedModel& model, const std::string& asked, bool normalize);

// `asked`: "RUN" or "RUN@STEP", or the folder of a Hugging Face model, a packed folder, or a GGUF file; or the registered
// name of one, "models:NAME", "models:NAME:VERSION" or "models:NAME@STAGE", whose files are then held to their hashes.
// `part`: as ServedModel::part.
// Errors: as find_checkpoints, open_hf_folder, open_packed_folder and kept_tokenizer; invalid: the tokenizer does not
// belong to the model; as find_registered and check_artifact.
Result<ServedModel> find_model(const std::string& asked, std::int64_t part = 0);
// The same of part 0, with a notice of which one a registered name is.
Result<ServedModel> find_model(const std::string& asked, const RunMessages& messages);

// The same of a run without @STEP with its newest blessed checkpoint (`systole ckpt bless`). Errors: also not_found:
// none is blessed.
Result<ServedModel> find_blessed(const std::string& asked);

// Fills an engine that open_engine made with other parameters of the model: those of `load`, in place. Errors: of `load`
// and the device; then the parameters are undefined.
Status load_engine(Engine& engine, const ServedModel& model, const LoadSome& load);

// An engine with the parameters loaded. `options.parameter` i8 or kInt4: weights in int8 or int4
// (execute/serve/int8_loader.h); else it is set here, to the model's, which of a packed folder is one of these. A longer
// cache than the model's context is cut to it. `phases`: "compile" ends before the parameters are read. Errors: those of
// the engine and of reading the parameters; unsupported: int8 of a folder packed in int4, or the other way round.
Result<std::unique_ptr<Engine>> open_engine(const ServedModel& model, const Machine& machine, EngineOptions options,
                                            StartPhases* phases = nullptr);

// The same without its parameters.
Result<std::unique_ptr<Engine>> create_engine(const ServedModel& model, const Machine& machine, EngineOptions options);

// How the model's conversations become prompts, by its own template or by the text `other`. Nothing: it has none.
// Errors: those of the template.
Result<std::optional<chat::ChatPrompt>> chat_of(const ServedModel& model, const std::optional<std::string>& other = {});

// How models are served on a machine: on cpu with products whose bits do not depend on what else is in a step (engine.h).
MachineUse serving_use(const std::string& backend);

// The machine to serve on, with so many threads on cpu; 0: as the model was trained with, and no more than cores. Errors:
// as open_machine and check_threads (of --threads). `use`: of ranks; `exact` is set here.
Result<Machine> machine_for(const ServedModel& model, const std::string& backend, Clock& clock,
                            std::int64_t threads = 0, MachineUse use = {});

}  // namespace systole
