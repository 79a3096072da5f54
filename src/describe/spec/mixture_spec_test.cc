// data.mixture: what it reads, writes and refuses.

#include <gtest/gtest.h>

#include "describe/spec/workload.h"

namespace systole {
namespace {

std::string job(const std::string& mixture, const std::string& more = "") {
  return "systole: 1\nname: mixed\nmodel: { family: gpt, layers: 1, width: 16, heads: 2, context: 32 }\n"
         "train: { batch: 2, steps: 100, optimizer: { kind: sgd, rate: 1e-2 } }\n"
         "data: { tokenizer: { vocabulary: 300 }, train: { document: blank_line" +
         more + " }, mixture: " + mixture + " }\n";
}

constexpr const char* kTwo =
    "{ sources: { wiki: { files: w.jsonl, field: body, weight: 3 }, code: { files: [c/*.txt], "
    "document: file, weight: 1, epochs: 2 } } }";

TEST(MixtureSpec, ASourceTakesTheKeysOfTrainAndItsValues) {
  const Workload w = read_workload(job(kTwo), "job.yaml").value();
  const MixtureSpec& mixture = w.data.mixture;
  ASSERT_EQ(mixture.sources.size(), 2u);
  EXPECT_EQ(mixture.sources[0].name, "wiki");
  EXPECT_EQ(mixture.sources[0].text.field, "body");
  EXPECT_EQ(mixture.sources[0].text.document, TextSpec::Document::blank_line) << "as data.train";
  EXPECT_EQ(mixture.sources[1].text.files, std::vector<std::string>{"c/*.txt"});
  EXPECT_EQ(mixture.sources[1].text.document, TextSpec::Document::file);
  EXPECT_EQ(mixture.sources[1].weight, 1.0);
  EXPECT_EQ(mixture.sources[1].epochs, 2);
  EXPECT_EQ(mixture.exhausted, MixtureSpec::Exhausted::rescale) << "a source has a limit";
  EXPECT_EQ(mixture.by, MixtureSpec::By::tokens);
}

TEST(MixtureSpec, WritesWhatItReads) {
  for (const std::string& mixture :
       {std::string(kTwo),
        std::string("{ sources: { a: { files: a.txt }, b: { files: b.txt, epochs: 1 } }, by: bytes, "
                    "temperature: 3, exhausted: stop }"),
        std::string("{ sources: { a: { files: a.txt }, b: { files: b.txt } }, schedule: [ { from: 0, a: 1, b: 0 }, { "
                    "from: 62.5%, a: 0.5, b: 3 } ] }")}) {
    const std::string once = to_yaml(read_workload(job(mixture), "job.yaml").value());
    EXPECT_EQ(to_yaml(read_workload(once, "again.yaml").value()), once);
    EXPECT_NE(once.find("mixture:"), std::string::npos);
  }
}

TEST(MixtureSpec, WithoutOneNothingIsWritten) {
  const Workload w = read_workload(job("{}", ", files: a.txt"), "job.yaml").value();
  EXPECT_EQ(to_yaml(w).find("mixture"), std::string::npos);
}

TEST(MixtureSpec, RefusesWhatMakesNoSense) {
  const auto two = [](const std::string& a, const std::string& b, const std::string& more = "") {
    return "{ sources: { a: { files: a.txt" + a + " }, b: { files: b.txt" + b + " } }" + more + " }";
  };
  const std::vector<std::pair<std::string, std::string>> wrong{
      {two(", weight: 0", ", weight: 1"), "data.mixture.sources: a.weight: 0 is no weight"},
      {two(", weight: -2", ", weight: 1"), "a.weight: -2 is no weight"},
      {two(", weight: 1e-323", ", weight: 1"), "a.weight: 1e-323 is no weight"},
      {two(", weight: 1", ""), "the source 'b' has no weight, and others have"},
      {two(", epochs: 0", ""), "a.epochs: 0 is too low"},
      {two(", epochs: 2", "", ", exhausted: repeat"), "repeat, and a source has a limit of epochs"},
      {two("", "", ", exhausted: stop"), "no source is ever exhausted"},
      {two(", weigth: 2", ""), "a.weigth: no key of a source"},
      {two(", weight: 1", ", weight: 1", ", temperature: 2"), "a temperature makes them from sizes"},
      {two("", "", ", schedule: [ { from: 0, a: 1, c: 2 } ]"), "there is no source 'c'"},
      {two("", "", ", schedule: [ { from: 0, a: 1 } ]"), "no weight of the source 'b'"},
      {two("", "", ", schedule: [ { from: 0, a: 0, b: 0 } ]"), "no source has a weight in this phase"},
      {two("", "", ", schedule: [ { from: 0, a: 1, b: 0 } ]"), "the source 'b' has no weight in any phase"},
      {two("", "", ", schedule: [ { from: 3, a: 1, b: 1 } ]"), "nothing says the weights of the first 3 steps"},
      {two("", "", ", schedule: [ { from: 0, a: 1, b: 1 }, { from: 60%, a: 1, b: 2 }, { from: 50, a: 1, b: 1 } ]"),
       "a phase from step 50 comes after one from step 60"},
      {two(", weight: 1", ", weight: 1", ", schedule: [ { from: 0, a: 1, b: 1 } ]"), "the schedule has others"},
      {"{ sources: { a: { weight: 1 } } }", "a: it names no files"},
      {"{ sources: { 'a b': { files: a } } }", "'a b' is no name of a source"},
      {"{ sources: {} }", "expected a map of sources by name"},
      {"{ by: bytes }", "data.mixture.by means nothing with"},
  };
  for (const auto& [mixture, message] : wrong) {
    const auto read = read_workload(job(mixture), "job.yaml");
    ASSERT_FALSE(read.ok()) << mixture;
    EXPECT_NE(to_string(read.error()).find(message), std::string::npos) << mixture << "\n" << to_string(read.error());
    EXPECT_NE(to_string(read.error()).find("hint: "), std::string::npos) << mixture;
  }
  const auto both = read_workload(job(kTwo, ", files: a.txt"), "job.yaml");
  ASSERT_FALSE(both.ok());
  EXPECT_NE(to_string(both.error()).find("exclude each other"), std::string::npos);
  std::string dropping = job(kTwo);
  dropping.replace(dropping.find("tokenizer:"), 0, "drop_remainder: true, ");
  EXPECT_NE(to_string(read_workload(dropping, "job.yaml").error()).find("no epochs that end for all sources at once"),
            std::string::npos);
  const auto neither = read_workload(job("{}"), "job.yaml");
  ASSERT_FALSE(neither.ok());
  EXPECT_NE(to_string(neither.error()).find("missing key 'data.train.files'"), std::string::npos);
}

}  // namespace
}  // namespace systole
