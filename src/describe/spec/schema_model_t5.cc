// Keys of `model` for t5 only.
#include "describe/spec/families/families.h"

namespace systole {

void T5Spec::add_keys(Schema& schema) {
  const Condition t5 = IN_FAMILY(decoder_layers).condition();
  schema.sections.push_back({"model.relative", "How the distance of two tokens enters a t5's scores.", {}, {}});
  auto& keys = schema.keys;
  keys.push_back({.path = "model.decoder_layers",
                  .codec = count_codec(IN_FAMILY(decoder_layers), 1, 10'000),
                  .doc = "Blocks of the decoder; `layers` are the encoder's.",
                  .derived = "model.layers",
                  .derive = [](Workload& w) { w.model.as<T5Spec>().decoder_layers = w.model.layers(); },
                  .when = t5});
  keys.push_back({.path = "model.target_context",
                  .codec = count_codec(IN_FAMILY(target_context), 1, 100'000'000),
                  .doc = "Tokens a row of targets: how long an answer may be; `context` is of what is read.",
                  .derived = "model.context",
                  .derive = [](Workload& w) { w.model.as<T5Spec>().target_context = w.model.context(); },
                  .when = t5});
  keys.push_back({.path = "model.relative.buckets",
                  .codec = count_codec(IN_FAMILY(relative_buckets), 4, 100'000),
                  .doc = "Buckets of distances, each with a bias for each head.",
                  .more = "A multiple of 4: half of them for each direction, and half of those for near distances.",
                  .default_yaml = "32",
                  .when = t5});
  keys.push_back({.path = "model.relative.furthest",
                  .codec = count_codec(IN_FAMILY(relative_furthest), 2, 1'000'000),
                  .doc = "Distances from this one on share the last bucket.",
                  .default_yaml = "128",
                  .when = t5});
}

}  // namespace systole
