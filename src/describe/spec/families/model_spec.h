#pragma once
// The section `model` of a workload: fields of every family, and the spec of one family, from which its model is made
// directly. A family added to FamilySpec has all keys whose fields it has (families.h).

#include <cstdint>
#include <string>
#include <variant>

#include "describe/spec/families/bert.h"
#include "describe/spec/families/decoder.h"
#include "describe/spec/families/mlp.h"
#include "describe/spec/families/t5.h"

namespace systole {

using FamilySpec = std::variant<DecoderSpec, BertSpec, T5Spec, MlpSpec>;

struct ModelSpec {
  std::string preset;   // "gpt2-124m"; its values are in the fields below; empty: none
  std::string weights;  // folder of a Hugging Face model, or GGUF file, to initialize from; empty: none
  FamilySpec family;

  // REQUIRES: the family is Spec's.
  template <typename Spec>
  Spec& as() {
    return std::get<Spec>(family);
  }
  template <typename Spec>
  const Spec& as() const {
    return std::get<Spec>(family);
  }
  // Null if the family is another one.
  template <typename Spec>
  const Spec* if_is() const {
    return std::get_if<Spec>(&family);
  }

  // Queries that every family answers.
  const char* family_name() const;  // "llama"
  Task task() const;
  // 0 where the family has no such size.
  std::int64_t context() const, target_context() const, vocabulary() const, layers() const, width() const,
      heads() const, experts() const;
  double dropout() const;
  AdaptersSpec adapters() const;  // rank 0 where the family has none
};

}  // namespace systole
