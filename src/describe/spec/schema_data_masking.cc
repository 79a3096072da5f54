// Keys of `data.masking`: which tokens a bert has to tell.
#include "describe/spec/schema.h"

namespace systole {

void add_masking_keys(Schema& schema) {
  const Condition bert{"model.family", {"bert"}};
  schema.sections.push_back(
      {"data.masking", "Which tokens a bert has to tell, and what stands in their place.", {}, {}});
  auto& keys = schema.keys;
  keys.push_back({.path = "data.masking.share",
                  .codec = fraction_codec(AT(data.masked_share)),
                  .doc = "Share of a row's tokens that are to be told; drawn anew in each epoch.",
                  .more = "The draw belongs to data.seed, the epoch, the row and the token's place in it, so it is the "
                          "same after a restart. The end of a document is never drawn.",
                  .default_yaml = "15%",
                  .when = bert});
  keys.push_back({.path = "data.masking.hidden",
                  .codec = fraction_codec(AT(data.masked_hidden)),
                  .doc = "Share of those that the mask, token 0, takes the place of.",
                  .default_yaml = "80%",
                  .when = bert});
  keys.push_back({.path = "data.masking.random",
                  .codec = fraction_codec(AT(data.masked_random)),
                  .doc = "Share of those that any token takes the place of; the others stay as they are.",
                  .default_yaml = "10%",
                  .when = bert});
}

}  // namespace systole
