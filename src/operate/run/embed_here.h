#pragma once
// Makes the vectors of a text's lines by a model of this machine, into a file that is whole or not there.

#include <cstdint>
#include <functional>
#include <string>

#include "operate/run/run_messages.h"
#include "operate/run/served_model.h"

namespace systole {

// As the options of `systole embed` have them.
struct EmbedOptions {
  std::string model, in = "-", out, pooling, backend = "cpu";
  std::int64_t dimensions = 0, context = 0;
  bool unnormalized = false, truncate = false;
};

struct EmbeddedTexts {
  std::int64_t texts = 0, tokens = 0, truncated = 0;
  std::int64_t numbers = 0;  // of a vector
  PoolingSpec pooling = {};
  Seconds took{};
  std::string from = {};                  // the model, for people
  std::optional<std::int64_t> step = {};  // of its checkpoint
  bool interrupted = false;               // by a signal: there is no file
};

// `progress`: a line, now and then. Errors: those of the model, its device and the files; invalid: more dimensions than
// the model has; context_length_exceeded: a line that does not fit, naming it.
Result<EmbeddedTexts> embed_here(const EmbedOptions& options, const std::function<void(const std::string&)>& progress,
                                 const RunMessages& messages, Clock& clock);

}  // namespace systole
