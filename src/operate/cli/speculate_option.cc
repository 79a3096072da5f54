#include "operate/cli/speculate_option.h"

namespace systole::cli {

void add_speculate_option(Subcommand command, std::string& asked) {
  command.add_option("--speculate", asked,
                     "ngram or ngram:K: guesses up to K next tokens (7) by what followed the last ones before, and "
                     "computes them together; the answers are the same, and come sooner where text repeats itself; "
                     "model:PATH or model:PATH:K: guesses by a smaller model of the same tokenizer, in memory too");
}

}  // namespace systole::cli
