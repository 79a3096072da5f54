#include "operate/cli/model_options.h"

#include "operate/run/serving_ranks.h"
#include "operate/run/weights_option.h"

namespace systole::cli {

void add_context_option(Subcommand command, std::int64_t& context, const std::string& what) {
  command.add_option("--context", context, what + "; 0: the model's context, of a published model at most 4096")
      .check(at_least(0))
      .capture_default_str();
}

void add_pooling_options(Subcommand command, std::string& pooling, bool& unnormalized, const std::string& what,
                         const std::string& unless) {
  command
      .add_option(
          "--pooling", pooling,
          fmt::format("mean, last or cls: {}; without: as the model's 1_Pooling/config.json says{}", what, unless))
      .check(one_of({"mean", "last", "cls"}));
  command.add_flag("--unnormalized", unnormalized, "leave vectors as long as they are");
}

void add_weights_option(Subcommand command, WeightsOption& option) {
  command
      .add_option(
          "--weights", option.kind,
          "stored: as the model has them (a folder of `systole quantize`: in int8 or int4); int8: its matrices in "
          "a quarter of f32's memory, which decodes faster and answers a little differently; int4: in a sixth, "
          "a GGUF file's Q4_0 and Q4_1 as they are")
      .check(one_of({"stored", "int8", "int4"}))
      .capture_default_str();
}

void add_cache_type_option(Subcommand command, std::string& type) {
  command
      .add_option("--cache-type", type,
                  "f32 or bf16: how keys and values are kept; bf16 takes half the memory, and rounds them")
      .check(one_of({"f32", "bf16"}))
      .capture_default_str();
}

void add_speculate_option(Subcommand command, std::string& asked) {
  command.add_option("--speculate", asked,
                     "ngram or ngram:K: guesses up to K next tokens (7) by what followed the last ones before, and "
                     "computes them together; the answers are the same, and come sooner where text repeats itself; "
                     "model:PATH or model:PATH:K: guesses by a smaller model of the same tokenizer, in memory too");
}

void add_ranks_option(Subcommand command, ServingRanksArguments& ranks, bool machines) {
  command
      .add_option("--ranks", ranks.ranks,
                  "processes that hold the model together, each a part of every layer: as many as divide its heads of "
                  "keys and values. The answers are those of one process")
      .check(at_least(1))
      .capture_default_str();
  if (!machines) return;
  command.add_option("--rendezvous", ranks.rendezvous,
                     "host:port where the ranks of several machines meet; rank 0 listens there");
  command
      .add_option("--rank", ranks.rank,
                  "which of them this process is, with --rendezvous; 0 serves, the others hold their parts")
      .check(at_least(0))
      .capture_default_str();
  command.add_option("--ranks-token-file", ranks.token_file,
                     "file with the 32 hexadecimal digits that the ranks of several machines share");
  command.add_flag("--ranks-tls", ranks.tls, "TLS between the ranks of several machines; the same on all");
}

}  // namespace systole::cli
