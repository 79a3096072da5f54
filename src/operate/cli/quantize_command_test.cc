// `systole quantize` as its users meet it: what it writes answers as `--weights int8` of the source does, and what it
// refuses leaves nothing behind.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "execute/weights/testing/gguf_of_four_bits.h"
#include "ground/base/document.h"
#include "ground/base/testing/files.h"
#include "ground/base/testing/places.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

const std::filesystem::path kGolden = SYSTOLE_SOURCE_DIR "/src/execute/weights/golden";

class QuantizeCommand : public testing::Test {
 protected:
  void copy(const std::string& golden, const std::string& to) const {
    std::filesystem::copy(kGolden / golden, systole_.folder() / to);
    std::filesystem::permissions(systole_.folder() / to, std::filesystem::perms::owner_all);
  }
  Captured run(std::vector<std::string> words, const std::string& model = "model") const {
    words.insert(words.begin(), {"quantize", model, "--backend", "reference"});
    return systole_.run(words);
  }
  void make_packed(const std::string& model = "model") const {
    const Captured got = run({"--out", "packed", "--limit", "50"}, model);
    ASSERT_EQ(got.exit.code, 0) << got.err;
  }
  Node generated(std::vector<std::string> words) const {
    words.insert(words.begin(), "generate");
    words.insert(words.end(), {"--backend", "reference", "--prompt", "All human", "--temperature", "0", "--tokens",
                               "20", "--min-tokens", "20", "--json"});
    const Captured got = systole_.run(words);
    EXPECT_EQ(got.exit.code, 0) << got.err;
    return parse_json(got.out, "stdout").value();
  }
  // What follows the header of a safetensors file.
  static std::string tensors_of(const std::string& file) {
    std::uint64_t header = 0;
    std::memcpy(&header, file.data(), sizeof header);
    return file.substr(sizeof header + static_cast<std::size_t>(header));
  }
  // Whether there is nothing but these in the folder.
  void expect_only(const std::vector<std::string>& names) const {
    std::vector<std::string> there;
    for (const auto& entry : std::filesystem::directory_iterator(systole_.folder()))
      there.push_back(entry.path().filename().string());
    std::sort(there.begin(), there.end());
    EXPECT_EQ(there, names);
  }
  static void expect_refused(const Captured& got, int exit, const std::string& why, const std::string& hint) {
    EXPECT_EQ(got.exit.code, exit) << got.out << got.err;
    EXPECT_NE(got.err.find(why), std::string::npos) << got.err;
    const std::size_t hints = got.err.find("hint: ");
    if (hint.empty()) return;
    EXPECT_NE(hints == std::string::npos ? hints : got.err.find(hint, hints), std::string::npos) << got.err;
  }

  SystoleRunner systole_;
};

TEST_F(QuantizeCommand, writes_a_folder_that_answers_as_weights_in_int8) {
  copy("llama", "model");
  systole_.write("model.gguf", gguf_of_folder((kGolden / "llama").string()));
  std::string first;
  for (const std::string model : {"model", "model.gguf"}) {
    make_packed(model);
    const std::string tensors = tensors_of(text_of(systole_.folder() / "packed/packed.safetensors"));
    if (first.empty()) first = tensors;
    EXPECT_TRUE(tensors == first) << "the file has rows in another order, and the same numbers";
    const Node expected = generated({model, "--weights", "int8"}), got = generated({"packed"});
    EXPECT_EQ(got.text_at("text"), expected.text_at("text")) << model;
    EXPECT_EQ(got.text_at("weights"), "int8") << "of a packed folder these are the stored ones";
    EXPECT_EQ(generated({"packed", "--weights", "int8"}).text_at("text"), expected.text_at("text"));
    for (const std::string from : {"packed", model.c_str()})
      EXPECT_EQ(generated({from, "--weights", "int8", "--ranks", "2"}).text_at("text"), expected.text_at("text"))
          << from;
    std::filesystem::remove_all(systole_.folder() / "packed");
  }
}

TEST_F(QuantizeCommand, in_int4_writes_a_folder_that_answers_as_the_file_of_four_bits) {
  systole_.write("model.gguf", gguf_of_four_bits((kGolden / "llama").string(), true));
  const Captured got = run({"--out", "packed", "--weights", "int4", "--limit", "20"}, "model.gguf");
  ASSERT_EQ(got.exit.code, 0) << got.out << got.err;
  EXPECT_NE(got.out.find(" in int4: "), std::string::npos) << got.out;
  EXPECT_NE(got.out.find("packed: weights in int4, "), std::string::npos) << got.out;
  const Node expected = generated({"model.gguf", "--weights", "int4"}), answer = generated({"packed"});
  EXPECT_EQ(answer.text_at("text"), expected.text_at("text"));
  EXPECT_EQ(answer.text_at("weights"), "int4") << "of a packed folder these are the stored ones";
  for (const char* from : {"packed", "model.gguf"})
    EXPECT_EQ(generated({from, "--weights", "int4", "--ranks", "2"}).text_at("text"), expected.text_at("text")) << from;
  for (const char* command : {"generate", "serve"}) {
    expect_refused(systole_.run({command, "packed", "--backend", "reference", "--weights", "int8"}), 3,
                   "'packed' is packed in int4, of which no weights in int8 are made", "it was made of");
  }
  expect_refused(run({"--out", "twice"}, "packed"), 2, "'packed' is packed in int4 already", "it was made of");
}

TEST_F(QuantizeCommand, in_int4_refuses_a_model_of_odd_sizes_and_an_error_above_the_limit) {
  copy("llama", "model");
  expect_refused(run({"--out", "packed", "--weights", "int4"}), 3, "no matrix of 16n outputs", "--weights int8");
  systole_.write("model.gguf", gguf_of_four_bits((kGolden / "llama").string(), false));
  expect_refused(run({"--out", "packed", "--weights", "int4", "--limit", "0"}, "model.gguf"), 1,
                 "int4 changes bits per byte by ", "--limit ");
  expect_only({"model", "model.gguf"});
}

TEST_F(QuantizeCommand, prints_the_error_and_documents_it) {
  copy("gpt2", "model");
  systole_.write("text.txt", "All human beings are born free and equal in dignity and rights.\n");
  const Captured got = run({"--out", "deep/packed/", "--text", "text.txt", "--limit", "50"});
  ASSERT_EQ(got.exit.code, 0) << got.err;
  EXPECT_NE(got.out.find(" held out: "), std::string::npos) << got.out;
  EXPECT_NE(got.out.find(" in int8: "), std::string::npos) << got.out;
  EXPECT_NE(got.out.find("deep/packed/: weights in int8, "), std::string::npos) << got.out;
  const Captured json = run({"--out", "again", "--text", "text.txt", "--limit", "50", "--json"});
  const Node node = parse_json(json.out, "stdout").value();
  const double stored = node.find("stored_bits_per_byte")->as_double().value(),
               int8 = node.find("int8_bits_per_byte")->as_double().value(),
               percent = node.find("error_percent")->as_double().value();
  EXPECT_GT(stored, 0);
  EXPECT_NE(stored, int8);
  EXPECT_NEAR(percent, 100 * std::abs(int8 / stored - 1), 1e-6);
  EXPECT_EQ(node.text_at("written"), "true");
  EXPECT_EQ(node.find("bytes")->as_int().value(),
            static_cast<std::int64_t>(text_of(systole_.folder() / "again" / "packed.safetensors").size()));
  EXPECT_TRUE(text_of(systole_.folder() / "again" / "packed.safetensors") ==
              text_of(systole_.folder() / "deep" / "packed" / "packed.safetensors"))
      << "the same model, the same bytes";
}

TEST_F(QuantizeCommand, gives_vectors_of_texts) {
  copy("gpt2", "model");
  make_packed();
  systole_.write("texts.txt", "All human\nbeings\n");
  const Captured got = systole_.run(
      {"embed", "packed", "--backend", "reference", "--pooling", "mean", "--in", "texts.txt", "--out", "v.jsonl"});
  EXPECT_EQ(got.exit.code, 0) << got.err;
  EXPECT_NE(got.err.find("2 vectors of 16 numbers"), std::string::npos) << got.err;
}

TEST_F(QuantizeCommand, above_the_limit_writes_nothing) {
  copy("gpt2", "model");
  const Captured got = run({"--out", "packed", "--limit", "0"});
  expect_refused(got, 1, "the limit is 0%: nothing was written", "--limit ");
  EXPECT_NE(got.out.find("bits per byte of "), std::string::npos) << "the error is said all the same: " << got.out;
  const Captured json = run({"--out", "packed", "--limit", "0", "--json"});
  EXPECT_EQ(parse_json(json.out, "stdout").value().text_at("written"), "false") << json.out;
  expect_only({"model"});
}

TEST_F(QuantizeCommand, never_writes_over_what_is_there) {
  copy("gpt2", "model");
  std::filesystem::create_directory(systole_.folder() / "packed");
  expect_refused(run({"--out", "packed", "--limit", "50"}), 1, "packed' is there already", "a new folder");
  EXPECT_TRUE(std::filesystem::is_empty(systole_.folder() / "packed"));
  expect_refused(run({"--out", "model"}), 1, "model' is there already", "a new folder");
  std::filesystem::remove(systole_.folder() / "packed");
  systole_.write("packed.part/notes", "of a process that was killed");
  expect_refused(run({"--out", "packed", "--limit", "50"}), 1, "packed.part' is there already", "rm -r '");
  EXPECT_EQ(text_of(systole_.folder() / "packed.part" / "notes"), "of a process that was killed");
  expect_only({"model", "packed.part"});
  systole_.write("it's.part/notes", "");
  const Captured killed = run({"--out", "it's", "--limit", "50"});
  const std::size_t hint = killed.err.find("rm -r ");
  ASSERT_NE(hint, std::string::npos) << killed.err;
  EXPECT_EQ(systole_.shell(killed.err.substr(hint, killed.err.find('\n', hint) - hint)).exit.code, 0) << killed.err;
  expect_only({"model", "packed.part"});
}

// A file size limit acts like a full disk.
TEST_F(QuantizeCommand, that_finds_no_room_leaves_nothing) {
  copy("gpt2", "model");
  const Captured full = systole_.shell(
      "trap '' XFSZ; ulimit -f 8; exec \"$SYSTOLE\" quantize model --backend reference --out packed --limit 50");
  EXPECT_EQ(full.exit.code, 1) << full.err;
  EXPECT_NE(full.err.find("packed.safetensors"), std::string::npos) << full.err;
  expect_only({"model"});
}

TEST_F(QuantizeCommand, refuses_wrong_input_by_name) {
  copy("gpt2", "model");
  copy("t5", "t5");
  systole_.write("empty.txt", "");
  expect_refused(run({"--out", "packed"}, "nowhere"), 2, "nowhere", "");
  expect_refused(run({"--out", "packed"}, "t5"), 3, "'t5' does not go on from a text", "systole serve MODEL");
  expect_refused(run({"--out", "packed", "--text", "gone.txt"}), 2, "gone.txt", "");
  expect_refused(run({"--out", "packed", "--text", "empty.txt"}), 2, "no byte that a model could predict",
                 "a longer text");
  expect_refused(run({"--out", "packed", "--weights", "int3"}), 2, "'int3' is none of int8, int4", "quantize --help");
  expect_refused(run({"--out", "packed", "--limit", "-1"}), 2, "--limit: '-1'", "quantize --help");
  expect_refused(run({}), 2, "--out", "quantize --help");
  expect_only({"empty.txt", "model", "t5"});
}

TEST_F(QuantizeCommand, a_packed_folder_is_served_and_nothing_else) {
  copy("gpt2", "model");
  make_packed();
  expect_refused(run({"--out", "twice"}, "packed"), 2, "'packed' is packed in int8 already", "it was made of");
  for (const char* command : {"generate", "serve"}) {
    expect_refused(systole_.run({command, "packed", "--backend", "reference", "--weights", "f32"}), 2,
                   "'f32' is none of stored, int8, int4", fmt::format("systole {} --help", command));
  }
  systole_.write("text.txt", text_of(kGolden.parent_path().parent_path() / "data" / "golden" / "scripts.txt"));
  systole_.write(
      "job.yaml",
      "systole: 1\nname: tuned\nmodel: { weights: packed }\ndata: { train: { files: text.txt }, folder: data }\n"
      "train: { batch: 2, steps: 2, optimizer: { kind: adamw, rate: 1e-3 }, precision: f32 }\n");
  expect_refused(systole_.run({"plan", "job.yaml", "--backend", "reference"}), 3,
                 "these weights are packed in int8: they are served, and nothing else", "they were made of");
}

TEST_F(QuantizeCommand, a_damaged_folder_is_refused_by_every_command) {
  copy("gpt2", "model");
  make_packed();
  const std::filesystem::path file = systole_.folder() / "packed" / "packed.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 1);
  systole_.write("texts.txt", "All human\n");
  const std::vector<std::vector<std::string>> commands = {
      {"generate", "packed", "--prompt", "a"},
      {"serve", "packed", "--port", "0"},
      {"embed", "packed", "--pooling", "mean", "--in", "texts.txt", "--out", "v.jsonl"}};
  for (std::vector<std::string> words : commands) {
    words.insert(words.end(), {"--backend", "reference"});
    expect_refused(systole_.run(words), 1, "packed/packed.safetensors", "systole quantize MODEL --out FOLDER");
  }
}

}  // namespace
}  // namespace systole::cli
