#include "describe/models/list.h"

#include "describe/models/bert/bert.h"
#include "describe/models/decoder/decoder.h"
#include "describe/models/mlp/mlp.h"
#include "describe/models/t5/t5.h"

namespace systole {

std::span<const ModelFamily> model_families() {
  static constexpr ModelFamily kFamilies[] = {
      {ModelSpec::Family::gpt, "gpt", [](const ModelSpec& spec) { return make_decoder(decoder_config(spec)); }},
      {ModelSpec::Family::llama, "llama", [](const ModelSpec& spec) { return make_decoder(decoder_config(spec)); }},
      {ModelSpec::Family::mlp, "mlp", [](const ModelSpec& spec) { return make_mlp(mlp_config(spec)); }},
      {ModelSpec::Family::bert, "bert", [](const ModelSpec& spec) { return make_bert(bert_config(spec)); }},
      {ModelSpec::Family::t5, "t5", [](const ModelSpec& spec) { return make_t5(t5_config(spec)); }},
  };
  return kFamilies;
}

std::unique_ptr<const Model> make_model(const ModelSpec& spec) {
  for (const ModelFamily& family : model_families()) {
    if (family.family == spec.family) return family.make(spec);
  }
  fail(error(ErrorKind::internal, "no model of family {}", static_cast<int>(spec.family)));
}

}  // namespace systole
