#pragma once
// Generates text by a model of this machine: it streams, or goes to a file that is whole or not there.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "execute/serve/generate.h"
#include "operate/run/run_messages.h"
#include "operate/run/weights_option.h"

namespace systole {

// As the options of `systole generate` have them.
struct GenerateAsked {
  std::string run, prompt, out, speculate, backend = "cpu";
  GenerateOptions generate;
  WeightsOption weights;
};

struct GeneratedText {
  Generated made;
  std::string prompt, text;  // `text`: without the prompt
  std::int64_t prompt_tokens = 0;
  Seconds load{}, generation{};
  std::optional<Seconds> first;      // of the first token; nothing: there is none
  Node start;                        // the phases until then
  std::string device, from;          // `from`: the model, for people
  std::optional<std::int64_t> step;  // of its checkpoint
  std::string weights, note;         // WeightsOption::kind and note
  bool interrupted = false;          // by a signal: there is no file
};

// `put` gets each piece of the text, if no file does: the prompt and its continuation, or only the answer of an
// encoder-decoder model. Errors: those of the model, its device and the file.
Result<GeneratedText> generate_here(const GenerateAsked& asked, const std::function<void(std::string_view)>& put,
                                    const RunMessages& messages, Clock& clock);

}  // namespace systole
