// A packed folder holds what `--weights int8` makes of its source, to the bit, is whole or absent, and is refused when it
// is damaged.

#include "operate/run/quantize_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>

#include "execute/weights/packed_folder.h"
#include "execute/weights/testing/gguf_of_folder.h"
#include "ground/base/testing/files.h"
#include "ground/base/testing/places.h"
#include "ground/store/testing/faulty.h"

namespace systole {
namespace {

const std::filesystem::path kGolden = SYSTOLE_SOURCE_DIR "/src/execute/weights/golden";
constexpr const char* kText = "All human beings are born free and equal in dignity and rights. ";
constexpr const char* kTemplate = "{{ messages[0].content }}";

class Quantize : public testing::Test {
 protected:
  // A golden model: its folder, or the GGUF file of it.
  std::string source(const std::string& name, bool gguf) const {
    const std::string path = folder_.path() + "/" + name + (gguf ? ".gguf" : "");
    if (gguf) {
      std::ofstream(path, std::ios::binary) << gguf_of_folder((kGolden / name).string(), kTemplate);
    } else {
      std::filesystem::copy(kGolden / name, path);
      std::filesystem::permissions(path, std::filesystem::perms::owner_all);
      std::ofstream(path + "/chat_template.jinja") << kTemplate;
      std::ofstream(path + "/generation_config.json") << R"({"eos_token_id": [1, 7]})";
    }
    return path;
  }
  std::string packed(const std::string& name = "gpt2", bool gguf = false) const {
    const std::string out = folder_.path() + "/packed-" + name + (gguf ? "-gguf" : "");
    const ServedModel served = find_model(source(name, gguf)).value();
    EXPECT_TRUE(quantize_model(served, machine_, {.out = out, .text = kText, .limit = 50}).value().written);
    return out;
  }
  std::unique_ptr<Engine> engine(const std::string& path, EngineOptions options) const {
    if (options.cache == 0) options.cache = 32;
    return open_engine(find_model(path).value(), machine_, options).value();
  }

  const TemporaryFolder folder_;
  const std::unique_ptr<Clock> clock_ = real_clock();
  const Machine machine_ = open_machine("reference", {}, *clock_).value();
};

std::vector<std::byte> bytes_of_value(Engine& engine, int v) {
  std::vector<std::byte> bytes(
      static_cast<std::size_t>(engine.program().values[static_cast<std::size_t>(v)].type.bytes().count()));
  engine.executor().read(v, 0, bytes).value();
  return bytes;
}

// What this process has read of files.
std::int64_t bytes_read() {
  std::ifstream io("/proc/self/io");
  std::string name;
  std::int64_t bytes = 0;
  io >> name >> bytes;
  EXPECT_EQ(name, "rchar:");
  return bytes;
}

// Of a large vocabulary it takes longer than all else until a server is ready.
TEST_F(Quantize, what_stands_before_the_tensors_of_a_gguf_is_read_once) {
  const std::string path = folder_.path() + "/model.gguf", notes(std::size_t{8} << 20, 'n');
  std::ofstream(path, std::ios::binary) << gguf_of_folder((kGolden / "llama").string(), notes);
  const std::int64_t before = bytes_read();
  const ServedModel model = find_model(path).value();
  const std::int64_t read = bytes_read() - before;
  EXPECT_EQ(model.chat_template, notes);
  EXPECT_GE(read, std::int64_t{8} << 20);
  EXPECT_LT(read, std::int64_t{12} << 20);
}

TEST_F(Quantize, makes_the_bits_of_weights_in_int8) {
  for (const std::string name : {"gpt2", "llama", "llama_bf16"}) {
    for (const bool gguf : {false, true}) {
      SCOPED_TRACE(name + (gguf ? " gguf" : ""));
      const std::string out = packed(name, gguf), from = folder_.path() + "/" + name + (gguf ? ".gguf" : "");
      const auto expected = engine(from, {.parameter = DType::i8}), got = engine(out, {});
      int parameters = 0, matrices = 0;
      for (std::size_t v = 0; v < expected->program().values.size(); ++v) {
        const ProgramValue& value = expected->program().values[v];
        if (value.residence != Residence::parameter) continue;
        ++parameters;
        matrices += value.type.dtype == DType::i8 ? 1 : 0;
        EXPECT_TRUE(bytes_of_value(*expected, static_cast<int>(v)) ==
                    bytes_of_value(*got, got->program().value_named(value.name)))
            << value.name;
      }
      EXPECT_GT(matrices, 4);
      EXPECT_GT(parameters, 2 * matrices);
      for (Engine* each : {expected.get(), got.get()}) {
        each->prefill(0, std::vector<std::int32_t>{5, 40, 7}).value();
        each->decode(std::vector<Engine::Next>{{0, 9}}).value();
      }
      EXPECT_EQ(std::memcmp(expected->logits(0).data(), got->logits(0).data(), got->logits(0).size_bytes()), 0);

      const ServedModel source = find_model(from).value(), served = find_model(out).value();
      Encoder theirs(source.tokenizer), ours(served.tokenizer);
      EXPECT_EQ(served.tokens_of(ours, kText), source.tokens_of(theirs, kText));
      EXPECT_EQ(served.chat_template, source.chat_template);
      EXPECT_EQ(served.chat_template, kTemplate);
      EXPECT_EQ(served.ends, source.ends);
      EXPECT_EQ(served.ends.empty(), gguf);
    }
  }
}

// An engine that only looks up the table of a tied head has it in f32: with the numbers that the other has in int8.
TEST_F(Quantize, gives_the_same_vectors_with_and_without_text) {
  const std::string out = packed();
  const auto both = engine(out, {.hidden = true}), alone = engine(out, {.hidden = true, .generates = false});
  ASSERT_TRUE(both->program().find_value("embed.tokens.q8"));
  ASSERT_TRUE(alone->program().find_value("embed.tokens"));
  const std::vector<std::int32_t> text{3, 17, 200, 4};
  const std::vector<std::span<const std::int32_t>> texts{text};
  const auto expected = both->hidden(texts).value(), got = alone->hidden(texts).value();
  EXPECT_TRUE(std::ranges::equal(expected[0], got[0]));
}

TEST_F(Quantize, says_what_the_weights_are) {
  const std::string out = packed("gpt2", true);
  const PackedFolder opened = open_packed_folder(out).value();
  std::map<std::string, std::string> metadata = opened.file.header().metadata;
  EXPECT_EQ(metadata["format"], "systole-packed");
  EXPECT_EQ(metadata["version"], "1");
  EXPECT_EQ(metadata["weights"], "int8");
  EXPECT_EQ(metadata["source_hash"], hash_of_weights(folder_.path() + "/gpt2.gguf").value());
  EXPECT_EQ(metadata["begins_with_bos"], "false");
}

TEST_F(Quantize, above_its_limit_writes_nothing) {
  const std::string out = folder_.path() + "/none";
  const ServedModel served = find_model(source("gpt2", false)).value();
  const QuantizedModel made = quantize_model(served, machine_, {.out = out, .text = kText, .limit = 0}).value();
  EXPECT_FALSE(made.written);
  EXPECT_GT(made.percent, 0);
  EXPECT_NEAR(made.percent, 100 * std::abs(made.packed.per_byte() / made.stored.per_byte() - 1), 1e-9);
  EXPECT_EQ(made.stored.bytes, made.packed.bytes);
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_FALSE(std::filesystem::exists(out + ".part"));
}

// The tokenizer of a GGUF file of SentencePiece's kind, which an own folder would not load, comes back with its bos.
TEST_F(Quantize, keeps_a_sentencepiece_tokenizer_of_a_gguf_file) {
  const std::string pieces = text_of(kGolden / "t5" / "spiece.model");
  const auto int8 = engine(source("gpt2", false), {.parameter = DType::i8});
  for (const bool begins : {false, true}) {
    const Tokenizer tokenizer = Tokenizer::load_foreign(pieces, begins).value();
    HfFolder from;
    from.path = "model.gguf";
    from.store = make_memory_store();
    const std::string out = folder_.path() + (begins ? "/begins" : "/plain");
    std::filesystem::create_directory(out);
    write_packed_folder(int8->executor(), from, tokenizer, *open_posix_store(out).value(), DType::i8).value();
    const ModelSpec model = workload_around(folder_.path() + "/gpt2").value().model;
    const Tokenizer back = tokenizer_of(open_packed_folder(out).value(), model).value();
    EXPECT_EQ(back.hash(), tokenizer.hash());
    EXPECT_EQ(back.before().size(), begins ? 1U : 0U);
  }
}

// A disk that is full from any call on: an error, and never a file of weights that is there in part.
TEST_F(Quantize, a_full_disk_at_any_write_leaves_no_weights_in_part) {
  const std::string path = source("gpt2", false);
  const ServedModel served = find_model(path).value();
  const auto int8 = engine(path, {.parameter = DType::i8});
  HfFolder from = open_hf_folder(path, served.spec).value();
  FaultyStore whole;
  const Bytes size = write_packed_folder(int8->executor(), from, served.tokenizer, whole, DType::i8).value();
  const std::int64_t calls = whole.changing_calls();
  ASSERT_GT(calls, 20);
  for (std::int64_t n = 1; n <= calls; ++n) {
    FaultyStore store;
    store.inject(Fault::fails_from(n, ENOSPC));
    const auto written = write_packed_folder(int8->executor(), from, served.tokenizer, store, DType::i8);
    ASSERT_FALSE(written.ok()) << n;
    EXPECT_EQ(written.error().kind, ErrorKind::no_space) << n << ": " << written.error().message;
    EXPECT_EQ(store.size(kPackedWeights).ok() ? store.size(kPackedWeights).value() : size, size) << n;
  }
}

class DamagedPacked : public Quantize {
 protected:
  void SetUp() override {
    out_ = packed();
    bytes_ = text_of(file());
  }
  std::string file() const { return out_ + "/packed.safetensors"; }
  // Replaces the first `from`, of the same length as `to`: the header keeps its size.
  std::string replaced(const std::string& from, const std::string& to) const {
    std::string bytes = bytes_;
    EXPECT_EQ(from.size(), to.size());
    const std::size_t at = bytes.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return at == std::string::npos ? bytes : bytes.replace(at, to.size(), to);
  }
  Error refused(const std::string& bytes) const {
    std::ofstream(file(), std::ios::binary) << bytes;
    Result<ServedModel> served = find_model(out_);
    if (!served.ok()) return served.error();
    const auto opened = open_engine(*served, machine_, {.cache = 32});
    EXPECT_FALSE(opened.ok());
    return opened.ok() ? Error() : opened.error();
  }
  std::string out_, bytes_;
};

TEST_F(DamagedPacked, at_any_length_is_refused_with_its_file) {
  for (std::size_t size = 0; size < bytes_.size(); size += size < 16 ? 1 : 997) {
    const Error bad = refused(bytes_.substr(0, size));
    EXPECT_EQ(bad.kind, ErrorKind::corrupt) << size << ": " << bad.message;
    EXPECT_EQ(bad.where.file, file()) << size << ": " << bad.message;
    EXPECT_NE(bad.hint.find("systole quantize MODEL --out FOLDER"), std::string::npos) << size << ": " << bad.hint;
  }
}

TEST_F(DamagedPacked, of_another_format_version_or_model_is_refused_by_name) {
  const Error format = refused(replaced("systole-packed", "somebody-else."));
  EXPECT_EQ(format.kind, ErrorKind::corrupt);
  EXPECT_NE(format.message.find("no format 'systole-packed'"), std::string::npos) << format.message;
  const Error newer = refused(replaced(R"("version":"1")", R"("version":"3")"));
  EXPECT_EQ(newer.kind, ErrorKind::unsupported);
  EXPECT_NE(newer.message.find("packed in version 3"), std::string::npos) << newer.message;
  EXPECT_EQ(newer.where.file, file());
  const Error absent = refused(replaced(".attn.q.q8\"", ".attn.r.q8\""));
  EXPECT_EQ(absent.kind, ErrorKind::corrupt);
  EXPECT_NE(absent.message.find("there is no tensor 'blocks.{layer}.attn.q.q8'"), std::string::npos) << absent.message;
  EXPECT_EQ(absent.where.file, file());
  const Error type = refused(replaced(R"("I8")", R"("U8")"));
  EXPECT_EQ(type.kind, ErrorKind::corrupt);
  EXPECT_NE(type.message.find("the model of config.json makes it i8"), std::string::npos) << type.message;
}

TEST_F(DamagedPacked, whose_config_is_another_models_is_refused) {
  std::string config = text_of(out_ + "/config.json");
  config.replace(config.find("\"n_layer\": 2"), 12, "\"n_layer\": 3");
  std::ofstream(out_ + "/config.json") << config;
  const Error bad = refused(bytes_);
  EXPECT_EQ(bad.kind, ErrorKind::corrupt) << bad.message;
  EXPECT_NE(bad.message.find("the model of config.json makes it"), std::string::npos) << bad.message;
}

}  // namespace
}  // namespace systole
