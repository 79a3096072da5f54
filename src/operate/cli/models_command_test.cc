// `systole models` as its users meet it: a model is trained, registered, held to a gate, promoted and used by its name;
// registries and files that are damaged; names that are none.

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "ground/base/document.h"
#include "ground/base/testing/files.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

constexpr const char* kWorkload = R"(systole: 1
name: tiny
model: { family: gpt, layers: 1, width: 16, heads: 2, context: 64 }
data:
  train: { files: text.txt, document: line }
  held_out: { fraction: 10% }
  tokenizer: { kind: sentencepiece, vocabulary: 300 }
  folder: data
train: { batch: 1, steps: 2, optimizer: { kind: adamw, rate: 1e-3 }, precision: f32 }
checkpoint: { every: 1, keep: 1 }
)";

class ModelsCommand : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    systole_ = std::make_unique<SystoleRunner>();
    std::string text;
    for (int i = 0; i < 300; ++i) text += fmt::format("word {} of a list, in its {}th line\n", i * 7 % 50, i);
    systole_->write("text.txt", text);
    systole_->write("job.yaml", kWorkload);
    run({"run", "job.yaml", "--backend", "reference"});
  }
  static void TearDownTestSuite() { systole_.reset(); }
  void SetUp() override {
    if (!systole_) GTEST_FAIL() << "no run";
    std::filesystem::remove_all(systole_->folder() / "runs/.models");
    std::filesystem::remove_all(systole_->folder() / "published");
    std::filesystem::copy(SYSTOLE_SOURCE_DIR "/src/execute/weights/golden/gpt2", systole_->folder() / "published");
    std::filesystem::permissions(systole_->folder() / "published", std::filesystem::perms::owner_all);
  }

  static Captured run(std::vector<std::string> arguments, int code = 0) {
    const std::string line = fmt::format("{}", fmt::join(arguments, " "));
    Captured got = systole_->run(std::move(arguments));
    EXPECT_EQ(got.exit.code, code) << line << "\n" << got.out << got.err;
    return got;
  }
  static Node json_of(std::vector<std::string> arguments, int code = 0) {
    arguments.push_back("--json");
    const Node seen = parse_json(run(std::move(arguments), code).out, "stdout").value();
    const Node* const model = seen.find("model");
    return model == nullptr ? seen : *model;
  }
  static Captured generate(const std::string& model, int code = 0) {
    return run({"generate", model, "--backend", "reference", "--prompt", "word", "--temperature", "0", "--tokens", "8"},
               code);
  }
  static void expect_says(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nis not in\n" << text;
  }
  static void damage(const std::filesystem::path& file) {
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    std::string bytes = text_of(file);
    ASSERT_FALSE(bytes.empty()) << file;
    bytes[bytes.size() / 2] ^= 1;
    std::ofstream(file, std::ios::binary) << bytes;
  }

  static std::unique_ptr<SystoleRunner> systole_;
};
std::unique_ptr<SystoleRunner> ModelsCommand::systole_;

TEST_F(ModelsCommand, a_trained_model_is_registered_gated_promoted_and_used_by_its_name) {
  systole_->write("results.json", R"({"arc": {"accuracy": 0.4}, "model": "tiny"})");
  const Node made = json_of({"models", "register", "tiny-1", "--metric", "accuracy=0.5", "--metrics", "results.json"});
  EXPECT_EQ(made.text_at("name"), "tiny");
  EXPECT_EQ(made.text_at("version"), "1");
  EXPECT_EQ(made.text_at("path"), "runs/tiny-1");
  EXPECT_EQ(made.text_at("step"), "2");
  EXPECT_EQ(made.text_at("workload_sha256").size(), 64U);
  EXPECT_EQ(made.text_at("plan_sha256").size(), 64U);
  EXPECT_FALSE(made.text_at("data").empty());
  EXPECT_EQ(made.find("sha256")->keys(), (std::vector<std::string>{"000000000002.json", "tokenizer.model"}));
  for (const char* metric : {"accuracy", "arc.accuracy", "loss"})
    EXPECT_NE(made.find("metrics")->find(metric), nullptr) << metric;

  const Captured refused = run({"models", "promote", "tiny:1", "--to", "production", "--require", "accuracy>=0.71"}, 4);
  expect_says(refused.err, "error: tiny:1 has accuracy 0.5, and accuracy>=0.71 is required");
  expect_says(generate("models:tiny@production", 2).err, "no version of 'tiny' has the stage production");
  EXPECT_EQ(
      run({"models", "promote", "tiny:1", "--to", "production", "--require", "accuracy>=0.5", "--require", "loss<100"})
          .out,
      "tiny:1: none to production\n");

  const Captured by_name = generate("models:tiny@production");
  expect_says(by_name.err, "models:tiny@production is tiny:1, stage production: step 2 of runs/tiny-1");
  EXPECT_EQ(by_name.out, generate("tiny-1@2").out);

  run({"models", "register", "tiny-1@2"});
  expect_says(run({"models", "promote", "tiny:2", "--to", "production"}).err, "tiny:1 is archived");
  expect_says(generate("models:tiny").err, "models:tiny is tiny:2");
  generate("models:tiny:1");
  const Node list = json_of({"models", "list", "tiny"});
  ASSERT_EQ(list.find("models")->items().size(), 2U);
  EXPECT_EQ(list.find("models")->items()[0].text_at("stage"), "archived");
  const Captured shown = run({"models", "show", "tiny:1"});
  expect_says(shown.out, "intact");
  expect_says(shown.out, "none to production, by ");
  expect_says(shown.out, "; required accuracy>=0.5, loss<100");
}

TEST_F(ModelsCommand, a_registered_checkpoint_stays_when_the_run_goes_on) {
  systole_->write("again.yaml", kWorkload);
  run({"run", "again.yaml", "--backend", "reference", "--folder", "runs/again"});
  run({"models", "register", "runs/again", "--name", "kept"});
  const std::string before = generate("models:kept").out;
  run({"resume", "runs/again", "--backend", "reference", "--set", "train.steps=4"});
  EXPECT_EQ(generate("models:kept").out, before);
  EXPECT_EQ(json_of({"models", "register", "runs/again", "--name", "kept", "--parent", "kept:1"}).text_at("step"), "4");
  expect_says(run({"models", "show", "kept:2"}).out, "models:kept:1");
}

TEST_F(ModelsCommand, processes_at_once_each_get_a_version) {
  const Captured all = systole_->shell(
      "for i in 1 2 3 4 5 6; do $SYSTOLE models register published --metric i=$i >out.$i 2>&1 || echo failed $i & "
      "done; "
      "wait");
  EXPECT_EQ(all.out, "") << all.err;
  const Node list = json_of({"models", "list"});
  ASSERT_EQ(list.find("models")->items().size(), 6U);
  std::set<std::string> metrics;
  for (std::size_t i = 0; i < 6; ++i) {
    const Node& model = list.find("models")->items()[i];
    EXPECT_EQ(model.text_at("version"), std::to_string(i + 1));
    metrics.insert(model.find("metrics")->text_at("i"));
  }
  EXPECT_EQ(metrics.size(), 6U) << "none is lost";
}

TEST_F(ModelsCommand, names_metrics_and_requirements_that_are_none_are_refused) {
  const auto refused = [](const std::vector<std::string>& words, const std::string& why) {
    std::vector<std::string> line{"models"};
    line.insert(line.end(), words.begin(), words.end());
    expect_says(run(line, 2).err, why);
  };
  for (const char* name : {"../tiny", "a b", "a\nb", "a:1", "a@b", ".hidden", "models:a", "\x1b[31m"})
    refused({"register", "published", "--name", name}, "is no name of a model");
  refused({"register", "published", "--name", std::string(101, 'a')}, "is no name of a model");
  refused({"register", "models:tiny"}, "is registered already");
  refused({"register", "nothing"}, "there is no run 'nothing'");
  refused({"register", "published", "--metric", "accuracy"}, "is no metric");
  refused({"register", "published", "--metrics", "none.json"}, "none.json");
  systole_->write("wrong.json", "{\"a b\": 1}");
  refused({"register", "published", "--metrics", "wrong.json"}, "wrong.json:1:");
  refused({"register", "published", "--parent", "other"}, "there is no registered model 'other'");
  refused({"promote", "tiny:1", "--to", "production", "--require", "accuracy=1"}, "is no requirement");
  refused({"promote", "tiny:1", "--to", "live"}, "--to");
  refused({"show", "tiny:0"}, "names no version");
  EXPECT_FALSE(std::filesystem::exists(systole_->folder() / "runs/.models")) << "nothing was registered";
  for (const char* model : {"models:", "models:../../etc/passwd", "models:tiny@live", "models:tiny"})
    generate(model, 2);
}

TEST_F(ModelsCommand, a_folder_whose_own_name_is_none_is_refused_before_it_is_read) {
  const std::filesystem::path spaced = systole_->folder() / "my model";
  std::filesystem::rename(systole_->folder() / "published", spaced);
  const std::filesystem::path file = spaced / "config.json";
  const std::string config = text_of(file);
  std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  systole_->write("my model/config.json", "{");
  const Captured refused = run({"models", "register", "my model"}, 2);
  expect_says(refused.err, "'my model' is no name of a model");
  expect_says(refused.err, "hint: --name NAME");
  systole_->write("my model/config.json", config);
  expect_says(run({"models", "register", "my model", "--name", "mine"}).out, "mine:1: my model, ");
  std::filesystem::remove_all(spaced);
}

// The log is JSON, which has no other text than UTF-8: the files would be looked for under other names.
TEST_F(ModelsCommand, paths_that_are_not_utf8_are_refused) {
  const std::filesystem::path published = systole_->folder() / "published", other = systole_->folder() / "\xff";
  std::ofstream(published / "notes\xff.txt") << "of a language";
  expect_says(run({"models", "register", "published"}, 2).err, "is not UTF-8");
  std::filesystem::remove(published / "notes\xff.txt");
  std::filesystem::rename(published, other);
  expect_says(run({"models", "register", "\xff", "--name", "other"}, 2).err, "is not UTF-8");
  std::filesystem::remove_all(other);
  EXPECT_FALSE(std::filesystem::exists(systole_->folder() / "runs/.models")) << "nothing was registered";
}

TEST_F(ModelsCommand, the_folder_that_the_command_runs_in_has_a_name_too) {
  const Captured made = systole_->run_in(systole_->folder() / "published", {"models", "register", "."});
  EXPECT_EQ(made.exit.code, 0) << made.err;
  expect_says(made.out, "published:1: ., ");
}

TEST_F(ModelsCommand, a_folder_that_cannot_be_read_is_not_registered_in_part) {
  const std::filesystem::path closed = systole_->folder() / "published" / "closed";
  std::filesystem::create_directory(closed);
  std::filesystem::permissions(closed, std::filesystem::perms::none);
  const Captured refused = systole_->run_as_user({"models", "register", "published"});
  EXPECT_NE(refused.exit.code, 0) << refused.out;
  expect_says(refused.err, "published");
  EXPECT_TRUE(json_of({"models", "list"}).find("models")->items().empty());
  std::filesystem::permissions(closed, std::filesystem::perms::owner_all);
}

TEST_F(ModelsCommand, a_damaged_registry_says_where_and_is_not_written_to) {
  run({"models", "register", "published"});
  const std::filesystem::path file = systole_->folder() / "runs/.models/audit.jsonl";
  damage(file);
  const std::string damaged = text_of(file);
  const Captured list = run({"models", "list"}, 1);
  expect_says(list.err, "runs/.models/audit.jsonl:1: error: the registry of models is damaged");
  expect_says(list.err, "mv runs/.models/audit.jsonl runs/.models/audit.jsonl.damaged");
  run({"models", "register", "published"}, 1);
  generate("models:published", 1);
  EXPECT_EQ(text_of(file), damaged);
  systole_->shell("mv runs/.models/audit.jsonl runs/.models/audit.jsonl.damaged");
  EXPECT_EQ(json_of({"models", "register", "published"}).text_at("version"), "1");
}

TEST_F(ModelsCommand, a_changed_or_missing_artifact_is_said_and_not_used) {
  run({"models", "register", "published"});
  generate("models:published");
  damage(systole_->folder() / "published/model.safetensors");
  expect_says(run({"models", "show", "published"}, 1).out, "changed: 'model.safetensors' has SHA-256 ");
  expect_says(generate("models:published", 1).err, "published:1 is not what was registered");
  run({"models", "promote", "published", "--to", "production"}, 1);
  std::filesystem::remove_all(systole_->folder() / "published");
  EXPECT_EQ(json_of({"models", "show", "published"}, 1).text_at("artifact"), "gone");
  generate("models:published", 2);
  run({"models", "promote", "published", "--to", "archived"});  // one that is gone can be
}

TEST_F(ModelsCommand, a_damaged_checkpoint_is_said_and_not_used) {
  std::filesystem::copy(systole_->folder() / "runs/tiny-1", systole_->folder() / "runs/broken",
                        std::filesystem::copy_options::recursive);
  run({"models", "register", "runs/broken", "--name", "broken"});
  const std::filesystem::path chunks = systole_->folder() / "runs/broken/checkpoints/chunks";
  for (const auto& chunk : std::filesystem::directory_iterator(chunks)) damage(chunk.path());
  expect_says(run({"models", "show", "broken"}, 1).out, "changed: ");
  run({"models", "promote", "broken", "--to", "staging"}, 1);
  generate("models:broken", 1);
  std::filesystem::remove_all(systole_->folder() / "runs/broken");
  expect_says(run({"models", "show", "broken"}, 1).out, "gone: ");
  generate("models:broken", 2);
}

}  // namespace
}  // namespace systole::cli
