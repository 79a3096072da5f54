// Keys of `data.masking`: which tokens a bert predicts.
#include "describe/spec/families/families.h"

namespace systole {

void add_masking_keys(Schema& schema) {
  const Condition bert = families_trained_on(Task::masked);
  schema.sections.push_back({"data.masking", "Which tokens a bert has to predict, and what replaces them.", {}, {}});
  auto& keys = schema.keys;
  keys.push_back({.path = "data.masking.share",
                  .codec = fraction_codec(AT(data.masked_share)),
                  .doc = "Share of a row's tokens that are to be predicted; drawn anew in each epoch.",
                  .more = "The draw belongs to data.seed, the epoch, the row and the token's place in it, so it is the "
                          "same after a restart. The end of a document is never drawn.",
                  .default_yaml = "15%",
                  .when = bert});
  keys.push_back({.path = "data.masking.hidden",
                  .codec = fraction_codec(AT(data.masked_hidden)),
                  .doc = "Share of those that are replaced by the mask, token 0.",
                  .default_yaml = "80%",
                  .when = bert});
  keys.push_back({.path = "data.masking.random",
                  .codec = fraction_codec(AT(data.masked_random)),
                  .doc = "Share of those that are replaced by a random token; the others stay as they are.",
                  .default_yaml = "10%",
                  .when = bert});
}

}  // namespace systole
