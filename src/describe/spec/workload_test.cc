#include "describe/spec/workload.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "describe/spec/schema.h"
#include "describe/spec/testing/small_workload.h"
#include "ground/base/testing/places.h"

namespace systole {
namespace {

std::string file_text(const std::string& path) {
  std::ifstream file(std::string(SYSTOLE_SOURCE_DIR) + "/" + path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Workload, fields_hold_what_was_asked_and_defaults_for_the_rest) {
  const Workload w = read(kSmall);
  EXPECT_EQ(w.name, "small");
  EXPECT_EQ(w.model.layers(), 2);
  EXPECT_EQ(w.model.as<DecoderSpec>().kv_heads, 4);
  EXPECT_EQ(w.model.vocabulary(), 300);
  EXPECT_EQ(w.model.as<DecoderSpec>().mlp, 256);
  EXPECT_EQ(w.data.held_out.files, (std::vector<std::string>{"b.txt", "c.txt"}));
  EXPECT_EQ(w.data.held_out_fraction, 0);
  EXPECT_EQ(w.train.steps, 10);
  EXPECT_FALSE(w.train.time.has_value());
  EXPECT_EQ(w.train.optimizer.weight_decay, 0.1);
  EXPECT_EQ(w.checkpoint.every, (Interval{0, Seconds(300)}));
}

TEST(Workload, a_command_stands_in_place_of_a_model) {
  const Workload w = read("systole: 1\nname: mine\ncommand: python3 train.py --steps 5\nlabels: { team: x }\n");
  EXPECT_EQ(w.command, (std::vector<std::string>{"python3", "train.py", "--steps", "5"}));
  EXPECT_EQ(to_yaml(read(to_yaml(w))), to_yaml(w));
  EXPECT_EQ(to_yaml(w).find("model"), std::string::npos) << to_yaml(w);
  EXPECT_EQ(read("systole: 1\nname: mine\ncommand: [sh, -c, \"echo a b\"]\n").command.back(), "echo a b");

  const std::string both = errors_of(std::string(kSmall) + "command: python3 train.py\n");
  for (const char* section : {"model", "data", "train"}) {
    EXPECT_NE(both.find(fmt::format("{} and command exclude each other", section)), std::string::npos) << both;
  }
  EXPECT_NE(both.find("job.yaml:3:1"), std::string::npos) << both;
  std::size_t errors = 0;
  for (std::size_t at = both.find(": error:"); at != both.npos; at = both.find(": error:", at + 1)) ++errors;
  EXPECT_EQ(errors, 3u) << both;
  const std::string neither = errors_of("systole: 1\nname: mine\n");
  EXPECT_NE(neither.find("or command: with a program of your own"), std::string::npos) << neither;
  EXPECT_NE(errors_of("systole: 1\nname: mine\ncommand: \"\"\n").find("command: "), std::string::npos);
  EXPECT_NE(errors_of("systole: 1\nname: mine\ncommand: []\n").find("names no program"), std::string::npos);
}

TEST(Workload, the_printed_document_reads_back_equal) {
  for (const char* more :
       {"", "mesh: { data: 1 }\n", "labels: { team: a, \"x y\": 'true' }\nresources: { memory: 3GiB }\n",
        "checkpoint: { every: never, keep_every: 7 }\n"}) {
    const std::string resolved = to_yaml(read(std::string(kSmall) + more));
    EXPECT_EQ(to_yaml(read(resolved)), resolved);
  }
  const std::string precise =
      replaced(kSmall, "rate: 1e-3", "rate: 0.1234567890123456, warmup: 3.3%, clip: 0.30000000000000004");
  EXPECT_EQ(read(to_yaml(read(precise))).train.optimizer.clip, 0.30000000000000004);
  EXPECT_EQ(to_yaml(read(to_yaml(read(precise)))), to_yaml(read(precise)));
}

TEST(Workload, every_key_that_means_something_is_shown) {
  const std::string resolved = to_yaml(read(kSmall));
  for (const char* line :
       {"  kv_heads: 4\n", "    beta2: 0.95\n", "  microbatches: 1\n", "    warmup: 0\n", "  packing: true\n"}) {
    EXPECT_NE(resolved.find(line), std::string::npos) << line << resolved;
  }
  for (const char* word : {"momentum", "inputs", "noise", "probe", "environments"}) {
    EXPECT_EQ(resolved.find(word), std::string::npos) << word;
  }
}

TEST(Workload, the_examples_read) {
  const Workload quick = read(file_text("examples/quickstart.yaml"), {"quick", {}});
  EXPECT_EQ(quick.train.time, Seconds(20));
  EXPECT_EQ(quick.train.precision.compute, DType::bf16);
  EXPECT_EQ(quick.train.precision.parameter, DType::f32);
  EXPECT_EQ(quick.train.optimizer.decay.fraction, 0.2);
  const Workload linear = read(file_text("examples/linear.yaml"));
  EXPECT_EQ(linear.data.kind, DataSpec::Kind::linear);
  EXPECT_EQ(linear.model.as<MlpSpec>().inputs * linear.model.as<MlpSpec>().outputs, 7840);
  EXPECT_EQ(read(file_text("examples/gpt2-124m.yaml")).model.width(), 768);
  EXPECT_EQ(read(file_text("examples/llama-50m.yaml"), {"glance", {}}).model.as<DecoderSpec>().kv_heads, 4);
  EXPECT_EQ(read(file_text("examples/bert.yaml"), {"glance", {}}).train.steps, 20);
  EXPECT_EQ(read(file_text("examples/t5.yaml"), {"glance", {}}).model.target_context(), 8);
}

TEST(Workload, all_errors_at_once_each_with_place_source_and_hint) {
  const std::string text = errors_of(
      "systole: 1\nname: x\nmodle: { family: gpt }\nmodel:\n  family: gpt\n  layers: -3\n  width: 100\n  heads: 12\n"
      "  context: 32\ndata:\n  train: { files: a, document: lines }\n  tokenizer: { vocabulary: 512MB }\n"
      "train: { batch: 4, steps: 10, optimizer: { rate: fast } }\n");
  EXPECT_EQ(text,
            "job.yaml:3:1: error: unknown key 'modle'\n"
            "  3 | modle: { family: gpt }\n"
            "    | ^^^^^\n"
            "  hint: did you mean 'model'?\n"
            "job.yaml:6:11: error: model.layers: -3 is too low\n"
            "  6 |   layers: -3\n"
            "    |           ^^\n"
            "  hint: 1 to 10,000\n"
            "job.yaml:8:10: error: 12 heads do not divide width 100\n"
            "  8 |   heads: 12\n"
            "    |          ^^\n"
            "  hint: heads may be 1, 2, 4, 5, 10, 20, 25, 50 or 100, or say model.head\n"
            "job.yaml:11:32: error: data.train.document: 'lines' is none of line, blank_line, file\n"
            "  11 |   train: { files: a, document: lines }\n"
            "     |                                ^^^^^\n"
            "  hint: did you mean 'line'?\n"
            "job.yaml:12:28: error: data.tokenizer.vocabulary: '512MB' is not a count: suffix 'MB' is not known\n"
            "  12 |   tokenizer: { vocabulary: 512MB }\n"
            "     |                            ^^^^^\n"
            "  hint: suffixes: k (10^3), M (10^6), B or G (10^9), T (10^12)\n"
            "job.yaml:13:50: error: train.optimizer.rate: expected a number, found text 'fast'\n"
            "  13 | train: { batch: 4, steps: 10, optimizer: { rate: fast } }\n"
            "     |                                                  ^^^^\n"
            "  hint: number, above 0, at most 1000000");
}

TEST(Workload, a_misspelt_section_is_told_alone_and_first) {
  EXPECT_EQ(errors_of(replaced(replaced(kSmall, "model:", "modle:"), "steps: 10", "steps: -1")),
            "job.yaml:3:1: error: unknown key 'modle'\n"
            "  3 | modle: { family: gpt, layers: 2, width: 64, heads: 4, context: 32 }\n"
            "    | ^^^^^\n"
            "  hint: did you mean 'model'?\n"
            "job.yaml:8:27: error: train.steps: -1 is too low\n"
            "  8 | train: { batch: 4, steps: -1, optimizer: { rate: 1e-3 } }\n"
            "    |                           ^^\n"
            "  hint: 1 to 1,000,000,000,000");
  const std::string steps = errors_of(replaced(kSmall, "steps: 10", "stpes: 10"));
  EXPECT_TRUE(steps.ends_with("hint: did you mean 'steps'?")) << steps;
}

TEST(Workload, resume_from_goes_with_a_model_and_with_a_command) {
  const Workload model = read(std::string(kSmall) + "resume: { from: runs/a-1@500 }\n");
  EXPECT_EQ(model.resume.from, "runs/a-1@500");
  EXPECT_EQ(read(to_yaml(model)).resume.from, "runs/a-1@500");
  EXPECT_EQ(to_yaml(read(kSmall)).find("resume"), std::string::npos) << "nothing is said of it where nobody said it";
  EXPECT_EQ(read("systole: 1\nname: x\ncommand: [sh]\nresume: { from: /a }\n").resume.from, "/a");
  EXPECT_TRUE(errors_of(std::string(kSmall) + "resume: { from: '' }\n")
                  .ends_with("hint: RUN, RUN@STEP, a folder of checkpoints, latest or blessed"));
}

TEST(Workload, a_setting_has_no_line_and_column) {
  EXPECT_TRUE(errors_of(kSmall, {"", {"train.batch=-1"}}).starts_with("--set train.batch=-1: error: train.batch: -1"));
}

// One wrong value, and a word that its message or hint must contain.
TEST(Workload, each_broken_value_says_why) {
  const struct {
    const char *from, *to, *says;
  } cases[] = {
      {"heads: 4", "heads: 7", "heads may be 1, 2, 4, 8, 16, 32 or 64"},
      {"heads: 4", "heads: 4, kv_heads: 3", "kv_heads may be 1, 2 or 4"},
      {"width: 64", "width: 99999999999999999999", "too many digits"},
      {"layers: 2", "layers: 2.5", "model.layers"},
      {"layers: 2", "layers: [2]", "model.layers: expected a count, found"},
      {"context: 32", "context: 0", "1 to 100,000,000"},
      {"context: 32", "context: 32, mlp_ratio: 1.01", "no whole number"},
      {"context: 32", "context: 32, dropout: 1", "leaves nothing"},
      {"context: 32", "context: 32, vocabulary: 299", "300 or more"},
      {"context: 32", "context: 32, inputs: 3", "model.inputs means nothing with model.family: gpt"},
      {"context: 32", "context: 32, loss: squared_error", "model.loss: cross_entropy"},
      {"heads: 4", "heads: 64, position: rotary", "pairs"},
      {"heads: 4", "heads: 4, head: 7, position: rotary", "a head has 7"},
      {"heads: 4", "heads: 4, mlp: 100, mlp_ratio: 4", "take one of them out"},
      {"heads: 4", "heads: 4, mlp: 0", "1 to 10,000,000"},
      {"heads: 4", "heads: 4, window: 0", "1 to 100,000,000"},
      {"heads: 4", "heads: 4, activation: relu3", "relu2"},
      {"family: gpt", "family: llama, moe: { experts: 4, top_k: 5 }", "a token cannot go to 5 of 4 experts"},
      {"family: gpt", "family: llama, moe: { experts: 4, group: 5 }", "groups of 5 tokens do not divide rows of 32"},
      {"family: gpt", "family: llama, moe: { top_k: 3 }", "model.moe.top_k means nothing without model.moe.experts"},
      {"family: gpt", "family: llama, moe: { experts: 1 }", "2 to 100,000"},
      {"family: gpt", "family: llama, moe: { experts: 4, capacity_factor: 0 }", "model.moe.capacity_factor"},
      {"heads: 4", "heads: 4, moe: { experts: 4 }", "experts have no biases here"},
      {"family: gpt", "family: llama, moe: { experts: 4, dense_layers: 2, dense_mlp: 8 }", "none has experts"},
      {"family: gpt", "family: llama, moe: { experts: 4, dense_layers: 1 }",
       "width of layers without experts is missing"},
      {"family: gpt", "family: llama, moe: { experts: 4, dense_mlp: 8 }", "no layer is without experts"},
      {"family: gpt", "family: llama, moe: { experts: 4, every: 2 }", "width of layers without experts is missing"},
      {"family: gpt", "family: llama, moe: { experts: 4, every: 3, dense_mlp: 8 }", "2 layers are no multiple of 3"},
      {"family: gpt", "family: llama, mla: { kv_rank: 8, rope: 4, value: 4 }", "missing key 'model.mla.nope'"},
      {"family: gpt", "family: llama, mla: { kv_rank: 8, nope: 4, rope: 3, value: 4 }", "there are 3"},
      {"family: gpt", "family: llama, mla: { kv_rank: 8, nope: 4, rope: 4, value: 9 }", "wider than keys of 8"},
      {"heads: 4", "heads: 4, mla: { kv_rank: 8, nope: 4, rope: 4, value: 4 }", "has rotary positions"},
      {"family: gpt", "family: llama, adapters: { rank: 2 }, mla: { kv_rank: 8, nope: 4, rope: 4, value: 4 }",
       "no adapters yet"},
      {"heads: 4", "heads: 4, theta: 1e4", "model.theta means nothing with model.position: learned"},
      {"family: gpt", "family: llama, rope_scaling: { factor: 8 }", "model.rope_scaling.kind: llama3"},
      {"family: gpt", "family: llama, rope_scaling: { kind: llama3 }", "missing key 'model.rope_scaling.factor'"},
      {"family: gpt", "family: llama, rope_scaling: { kind: llama3, factor: 8, low_freq_factor: 4 }",
       "nothing lies between"},
      {"context: 32", "context: 32, mesh: { data: 2 }", "mesh is a key at the top level"},
      {"context: 32", "context: 32, batch: 3", "train.batch is a key"},
      {"vocabulary: 300", "vocabulary: 300, file: t.model", "exclude each other"},
      {"{ vocabulary: 300 }", "{}", "tokenizer's size is missing"},
      {"b.txt, c.txt]", "b.txt, c.txt], fraction: 5%", "exclude each other"},
      {"steps: 10", "steps: 10, time: 5s", "train.steps and train.time exclude each other"},
      {"steps: 10,", "", "nothing says when training ends"},
      {"steps: 10", "time: 5s, exact: true", "train.steps or train.tokens"},
      {"steps: 10", "steps: 10, exact: true, logical_shards: 6", "a power of two: 8"},
      {"steps: 10", "steps: 10, logical_shards: 4", "train.logical_shards means nothing with train.exact: false"},
      {"steps: 10", "steps: 10, exact: true, logical_shards: 2, microbatches: 3", "a shard has whole ones"},
      {"steps: 10", "steps: 10, exact: true, precision: { reduce: bf16 }", "adds up in f32, not in bf16"},
      {"steps: 10", "time: 100", "has no unit"},
      {"steps: 10", "time: 5 parsecs", "train.time"},
      {"steps: 10", "steps: 10, microbatches: 5", "train.microbatches: 4 at most"},
      {"steps: 10", "steps: 10, precision: bf17", "bf16"},
      {"steps: 10", "steps: 10, precision: { parameter: bf16 }", "small updates and long sums would be lost"},
      {"steps: 10", "steps: 10, precision: { accumulate: f16 }", "f32, or f64 with --backend reference"},
      {"steps: 10", "steps: 10, precision: { parameter: bf61 }", "none of f32, f64"},
      {"steps: 10", "steps: 10, precision: { comput: bf16 }", "did you mean 'compute'?"},
      {"steps: 10", "steps: 10, recompute: all", "none, attention, block"},
      {"steps: 10", "steps: 10, recompute: atention", "hint: did you mean 'attention'?"},
      {"name: small", "name: small\ncheckpoint: { every: nevr }", "hint: did you mean 'never'?"},
      {"rate: 1e-3", "rate: 0", "above 0"},
      {"rate: 1e-3", "rate: .inf", "train.optimizer.rate"},
      {"rate: 1e-3", "momentum: 0.9, rate: 1", "train.optimizer.kind: sgd"},
      {"rate: 1e-3", "kind: sgd, beta1: 0.9, rate: 1", "train.optimizer.kind: adamw"},
      {"rate: 1e-3", "rate: 1, schedule: warmup-stable-decay, warmup: 6, decay: 50%", "longer than the run"},
      {"{ rate: 1e-3 }", "{}", "missing key 'train.optimizer.rate'"},
      {"name: small", "", "missing key 'name'"},
      {"name: small", "name: small\nname: again", "name"},
      {"name: small", "name: small\nworkload: batch", "not in this version"},
      {"name: small", "name: small\nworkload: serve", "data means nothing with workload: serve"},
      {"name: small", "name: small\nserve: { slots: 2 }", "take it out, or workload: serve"},
      {"name: small", "name: small\nsecure: {}", "kept for a later version"},
      {"name: small", "name: small\nmesh: { dat: 2 }", "did you mean 'data'?"},
      {"name: small", "name: small\nmesh: { expert: 2 }", "an axis 'expert' of 2, and the model has no experts"},
      {"model: { family: gpt", "mesh: { expert: 4 }\nmodel: { family: llama, moe: { experts: 6 }",
       "expert may be 1, 2, 3 or 6"},
      {"systole: 1", "systole: 1\nmesh: { expeert: 2 }", "axes are data, fsdp, context, expert, model and pipe"},
      {"rate: 1e-3 } }", "rate: 1e-3 }, exact: true }\nmesh: { expert: 2 }", "with an axis 'expert': its sums"},
      {"rate: 1e-3 } }", "rate: 1e-3 }, exact: true }\nmesh: { pipe: 2 }", "an axis 'pipe' is not done yet"},
      {"name: small", "name: small\nmesh: { context: 3 }", "rows of 32 tokens are not cut into 2 × 3 chunks"},
      {"rate: 1e-3 } }", "rate: 1e-3 }, exact: true }\nmesh: { context: 2 }",
       "train.exact on a mesh with an axis 'context'"},
      {"context: 32", "context: 32, window: 4 }\nmesh: { context: 2 }\nlabels: { a: b",
       "a window of attention on a mesh"},
      {"name: small", "name: small\nmesh: { context: 2 }\nprobe: { values: [logits] }",
       "looking at values (probe) on a mesh"},
      {"name: small", "name: small\nmesh: { context: 2 }\nsharding: { embed.tokens: { vocab: context } }",
       "along which parameters are whole"},
      {"name: small", "name: small\npipeline: { chunks: 2 }", "the mesh has no axis 'pipe'"},
      {"name: small", "name: small\nmesh: { pipe: 2 }\npipeline: { chunks: 2 }", "takes microbatches by the 2"},
      {"name: small", "name: small\nmesh: { pipe: 2 }\npipeline: { layers: [1, 1, 1] }", "3 numbers of layers for 2"},
      {"name: small", "name: small\npipeline: { layers: [1, 1] }", "2 numbers of layers for 1"},
      {"name: small", "name: small\npipeline: { schedule: 1f2b }", "did you mean '1f1b'?"},
      {"name: small", "name: small\nsharding: { embed.tokens: { vocab: model } }", "there is one device"},
      {"name: small", "name: small\nresources: { memory: 0.5 }", "has no unit"},
      {"name: small", "name: small\ncheckpoint: { best: true }", "train.evaluate.every"},
      {"name: small", "name: small\nenvironments: { big: { train: { stesp: 3 } } }", "did you mean 'steps'?"},
      {"systole: 1", "systole: 2", "reads up to 1"},
      {"systole: 1", "", "missing key 'systole'"},
      {"family: gpt", "family: gpd", "did you mean 'gpt'?"},
      {"family: gpt", "family: mlp, preset: gpt2-124m", "is of family gpt"},
  };
  for (const auto& c : cases) {
    const std::string said = errors_of(replaced(kSmall, c.from, c.to));
    EXPECT_NE(said.find(c.says), std::string::npos) << c.to << "\n" << said;
    EXPECT_NE(said.find("job.yaml"), std::string::npos) << said;
  }
}

// In exact training a batch of 13 has at most 8 microbatches over 8 shards. Two rules apply, and both say so.
TEST(Workload, hints_about_microbatches_of_exact_training_agree) {
  const struct {
    int batch, microbatches, most;
  } kCases[] = {{13, 20, 8}, {13, 16, 8}, {13, 13, 8}, {13, 14, 8}, {30, 29, 24}, {30, 40, 24}, {5, 6, 5}, {5, 20, 5}};
  for (const auto& c : kCases) {
    const auto of = [](int batch, int microbatches) {
      return errors_of(replaced(replaced(kSmall, "batch: 4", fmt::format("batch: {}", batch)), "steps: 10",
                                fmt::format("steps: 10, exact: true, microbatches: {}", microbatches)));
    };
    const std::string said = of(c.batch, c.microbatches);
    std::size_t hints = 0;
    for (std::size_t at = said.find("microbatches: "); at != said.npos; at = said.find("microbatches: ", at + 1)) {
      if (said.compare(at - 6, 6, "train.") != 0) continue;
      EXPECT_EQ(std::atoi(said.c_str() + at + 14), c.most) << said;
      ++hints;
    }
    EXPECT_GE(hints, 1u) << said;
    EXPECT_EQ(of(c.batch, c.most), "no error") << c.batch;
  }
}

TEST(Workload, of_a_broken_value_only_that_is_said) {
  for (const char* to : {"family: 3", "family: gpt, layer: 2"}) {
    const auto result = read_workload(replaced(kSmall, "family: gpt", to), "job.yaml");
    ASSERT_FALSE(result.ok());
    EXPECT_TRUE(result.error().others.empty()) << to_string(result.error());
  }
}

TEST(Workload, a_newer_document_is_refused_by_its_version_alone) {
  const auto result = read_workload(replaced(kSmall, "systole: 1", "systole: 7\nfuture: x"), "job.yaml");
  ASSERT_FALSE(result.ok());
  EXPECT_NE(to_string(result.error()).find("version 7"), std::string::npos) << to_string(result.error());
}

TEST(Workload, each_error_has_the_key_that_it_is_about_and_its_code) {
  const auto first = [](const std::string& text, const WorkloadOptions& options = {}) {
    const auto result = read_workload(text, "job.yaml", options);
    EXPECT_FALSE(result.ok()) << text;
    return std::pair(result.error().code, result.error().key);
  };
  EXPECT_EQ(first(replaced(kSmall, "layers: 2", "layers: two")),
            std::pair(ErrorCode::unexpected_value, std::string("model.layers")));
  EXPECT_EQ(first(replaced(kSmall, "layers: 2", "layesr: 2")),
            std::pair(ErrorCode::unknown_key, std::string("model.layesr")));
  EXPECT_EQ(first(replaced(kSmall, ", heads: 4", "")), std::pair(ErrorCode::missing_key, std::string("model.heads")));
  EXPECT_EQ(first(replaced(kSmall, "context: 32", "context: 32, inputs: 3")),
            std::pair(ErrorCode::conflicting_keys, std::string("model.inputs")));
  EXPECT_EQ(first(replaced(kSmall, "heads: 4", "heads: 7")), std::pair(ErrorCode::none, std::string("model.heads")));
  EXPECT_EQ(first(replaced(kSmall, "systole: 1", "systole: 7")).first, ErrorCode::newer_version);
  EXPECT_EQ(first(kSmall, {"none", {}}).first, ErrorCode::no_such_environment);
}

TEST(Workload, what_is_no_workload) {
  EXPECT_NE(errors_of("").find("systole: 1"), std::string::npos);
  EXPECT_NE(errors_of("[1, 2]").find("expected a workload"), std::string::npos);
  EXPECT_NE(errors_of("a: [1\n").find("job.yaml:"), std::string::npos);
}

TEST(Workload, overlays_win_and_settings_win_over_them) {
  const std::string text =
      std::string(kSmall) +
      "environments:\n  big: { train: { batch: 64, time: 1h } }\n  tiny: { model: { layers: 1 } }\n";
  const Workload big = read(text, {"big", {}});
  EXPECT_EQ(big.train.batch, 64);
  EXPECT_FALSE(big.train.steps.has_value()) << "time takes the place of steps";
  EXPECT_EQ(big.model.layers(), 2);
  EXPECT_EQ(read(text, {"tiny", {"model.layers=3", "train.tokens=1k"}}).model.layers(), 3);
  EXPECT_EQ(read(text, {"tiny", {"train.tokens=1k"}}).train.tokens, 1000);
  EXPECT_EQ(read(text, {"", {"train.optimizer.warmup=null"}}).train.optimizer.warmup, Portion{});
  EXPECT_NE(errors_of(text, {"bug", {}}).find("did you mean 'big'?"), std::string::npos);
  EXPECT_NE(errors_of(text, {"", {"train.stps=1"}}).find("did you mean 'steps'?"), std::string::npos);
  EXPECT_NE(errors_of(text, {"", {"train.steps"}}).find("--set train.time=15s"), std::string::npos);
  EXPECT_NE(errors_of(kSmall, {"big", {}}).find("the document has none"), std::string::npos);
}

TEST(Workload, recompute_takes_a_policy_or_names) {
  const Workload w = read(replaced(kSmall, "steps: 10", "steps: 10, recompute: [qkv, mlp]"));
  EXPECT_EQ(w.train.recompute.kind, RecomputeSpec::Kind::named);
  EXPECT_EQ(w.train.recompute.save, (std::vector<std::string>{"qkv", "mlp"}));
  EXPECT_EQ(read(to_yaml(w)).train.recompute.save, w.train.recompute.save);
}

TEST(Workload, what_a_misspelt_section_lacks_is_not_told_at_an_environment) {
  const std::string text = replaced(kSmall, "model:", "modle:") + "environments: { tiny: { model: { layers: 1 } } }\n";
  for (const char* environment : {"", "tiny"}) {
    const std::string errors = errors_of(text, {environment, {}});
    EXPECT_NE(errors.find("unknown key 'modle'"), std::string::npos) << errors;
    EXPECT_EQ(errors.find("missing key"), std::string::npos) << errors;
  }
}

TEST(Workload, short_times_are_printed_as_they_are_read) {
  const Workload w = read(std::string(kSmall) + "checkpoint: { every: 50us }\n");
  EXPECT_EQ(w.checkpoint.every.time, Seconds(50e-6));
  EXPECT_NE(to_yaml(w).find("0.00005s"), std::string::npos) << to_yaml(w);
  EXPECT_EQ(read(to_yaml(w)).checkpoint.every, w.checkpoint.every);
}

}  // namespace
}  // namespace systole
