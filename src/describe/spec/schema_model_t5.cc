// Keys of `model` that only a t5 has.
#include "describe/spec/schema.h"

namespace systole {

void add_t5_keys(Schema& schema) {
  const Condition t5{"model.family", {"t5"}};
  schema.sections.push_back({"model.relative", "How the distance of two tokens enters a t5's scores.", {}, {}});
  auto& keys = schema.keys;
  keys.push_back({.path = "model.decoder_layers",
                  .codec = count_codec(AT(model.decoder_layers), 1, 10'000),
                  .doc = "Blocks of the decoder; `layers` are the encoder's.",
                  .derived = "model.layers",
                  .derive = [](Workload& w) { w.model.decoder_layers = w.model.layers; },
                  .when = t5});
  keys.push_back({.path = "model.target_context",
                  .codec = count_codec(AT(model.target_context), 1, 100'000'000),
                  .doc = "Tokens a row of targets: how long an answer may be; `context` is of what is read.",
                  .derived = "model.context",
                  .derive = [](Workload& w) { w.model.target_context = w.model.context; },
                  .when = t5});
  keys.push_back({.path = "model.relative.buckets",
                  .codec = count_codec(AT(model.relative_buckets), 4, 100'000),
                  .doc = "Into so many buckets distances fall, each with a number for each head.",
                  .more = "A multiple of 4: half of them for each direction, and half of those for near distances.",
                  .default_yaml = "32",
                  .when = t5});
  keys.push_back({.path = "model.relative.furthest",
                  .codec = count_codec(AT(model.relative_furthest), 2, 1'000'000),
                  .doc = "Distances from this one on share the last bucket.",
                  .default_yaml = "128",
                  .when = t5});
}

}  // namespace systole
