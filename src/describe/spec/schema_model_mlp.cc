// Keys of `model` for mlp only.
#include "describe/spec/families/families.h"

namespace systole {

void MlpSpec::add_keys(Schema& schema) {
  auto& keys = schema.keys;
  keys.push_back({.path = "model.inputs",
                  .codec = count_codec(IN_FAMILY(inputs), 1, 100'000'000),
                  .doc = "Numbers an example has.",
                  .when = IN_FAMILY(inputs).condition()});
  keys.push_back({.path = "model.hidden",
                  .codec = counts_codec(IN_FAMILY(hidden), 1, 100'000'000),
                  .doc = "Widths of the layers between inputs and outputs; `[]` is linear regression.",
                  .default_yaml = "[]",
                  .when = IN_FAMILY(hidden).condition()});
  keys.push_back({.path = "model.outputs",
                  .codec = count_codec(IN_FAMILY(outputs), 1, 100'000'000),
                  .doc = "Numbers that are predicted.",
                  .when = IN_FAMILY(outputs).condition()});
}

}  // namespace systole
