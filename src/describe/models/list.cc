#include "describe/models/list.h"

#include "describe/models/bert/bert.h"
#include "describe/models/decoder/decoder.h"
#include "describe/models/mlp/mlp.h"
#include "describe/models/t5/t5.h"

namespace systole {
namespace {

std::unique_ptr<const Model> made(const DecoderSpec& spec) { return make_decoder(spec); }
std::unique_ptr<const Model> made(const BertSpec& spec) { return make_bert(spec); }
std::unique_ptr<const Model> made(const T5Spec& spec) { return make_t5(spec); }
std::unique_ptr<const Model> made(const MlpSpec& spec) { return make_mlp(spec); }

}  // namespace

std::unique_ptr<const Model> make_model(const ModelSpec& spec) {
  return std::visit([](const auto& family) { return made(family); }, spec.family);
}

}  // namespace systole
