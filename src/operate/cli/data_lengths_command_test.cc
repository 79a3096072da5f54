// `systole data lengths` through the command line: claims about buckets from a file of lengths, a built dataset beside
// what it is really packed into, prices of a plan, and what is refused. And padding in data show, plan and check.

#include <gtest/gtest.h>

#include <filesystem>

#include "ground/base/document.h"
#include "operate/cli/testing/run_systole.h"

namespace systole::cli {
namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class DataLengths : public testing::Test {
 protected:
  void SetUp() override {
    std::string text, pairs;
    for (int i = 0; i < 300; ++i) {
      text += fmt::format("alpha {}", i * 7919 % 1000);
      for (int more = 0; more < i % 17; ++more) text += fmt::format(" of beta{}", more % 13);
      text += "\n";
      pairs += fmt::format("{{\"input\": \"say {}\", \"target\": \"{}\"}}\n", i, i % 7);
    }
    systole_.write("text.txt", text);
    systole_.write("pairs.jsonl", pairs);
  }
  void write_job(const std::string& family, const std::string& files, const std::string& data = {},
                 const std::string& more = {}) const {
    systole_.write(
        "job.yaml",
        fmt::format("systole: 1\nname: text\nmodel: {{ family: {}, layers: 1, width: 16, heads: 2, context: "
                    "64 }}\ndata: {{ train: {{ files: {} }}, folder: data, tokenizer: {{ vocabulary: 300 }}{} "
                    "}}\ntrain: {{ batch: 2, steps: 3, optimizer: {{ kind: sgd, rate: 1e-2 }} }}\n{}",
                    family, files, data, more));
  }
  Node lengths(std::vector<std::string> words) const {
    words.insert(words.begin(), {"data", "lengths"});
    words.emplace_back("--json");
    const Captured seen = systole_.run(words);
    EXPECT_EQ(seen.exit.code, 0) << seen.err;
    return parse_json(seen.out, "out").value();
  }
  static const Node& way(const Node& node, const std::string& name) {
    for (const Node& one : node.find("ways")->items())
      if (has(one.text_at("way"), name)) return one;
    ADD_FAILURE() << "no way " << name;
    return node;
  }
  SystoleRunner systole_;
};

TEST_F(DataLengths, claims_about_buckets) {
  systole_.write("twenty.csv", "length,count\n20,1000\n");
  const Captured one = systole_.run({"data", "lengths", "twenty.csv", "--edges", "128"});
  EXPECT_EQ(one.exit.code, 0) << one.err;
  EXPECT_TRUE(has(one.out, "twenty.csv: 1,000 texts, 20,000 tokens: mean 20.0, median 20, p90 20")) << one.out;
  EXPECT_TRUE(has(one.out, "84.4% of the positions are padding\n")) << one.out;
  EXPECT_TRUE(has(one.out, "packed ")) << one.out;

  // Rows are packed to the context, whatever the buckets.
  const Node wide = lengths({"twenty.csv", "--edges", "128", "--context", "256"});
  EXPECT_EQ(way(wide, "packed").text_at("positions"), std::to_string(84 * 256));
  EXPECT_EQ(way(wide, "padded to 256").text_at("positions"), "256000");
  EXPECT_EQ(way(wide, "1 bucket").text_at("positions"), "128000");

  systole_.write("claim.json", "{\"125\": 600, \"250\": 250, \"500\": 110, \"1000\": 30, \"2000\": 10}");
  const Captured five = systole_.run(
      {"data", "lengths", "claim.json", "--edges", "128,256,512,1024,2048", "--waste", "5%", "--svg", "lengths.svg"});
  EXPECT_EQ(five.exit.code, 0) << five.err;
  EXPECT_TRUE(has(five.out, "95% of the rows are in 3 buckets; 2.3% of the positions are padding\n")) << five.out;
  EXPECT_TRUE(std::filesystem::exists(systole_.folder() / "lengths.svg"));

  const Captured few = systole_.run({"data", "lengths", "claim.json", "--edges", "512,2048", "--waste", "5%"});
  EXPECT_EQ(few.exit.code, 1) << few.out;
  EXPECT_TRUE(has(few.err, "more than 5% is padding")) << few.err;
  const Node best = lengths({"claim.json", "--shapes", "2"});
  EXPECT_EQ(to_json(*best.find("edges")), "[250,2000]");
  const Captured many = systole_.run({"data", "lengths", "claim.json", "--shapes", "100000"});
  EXPECT_EQ(many.exit.code, 2) << many.out;
  EXPECT_TRUE(has(many.err, "hint: --shapes 256\n")) << many.err;
}

TEST_F(DataLengths, of_a_dataset_are_those_it_is_packed_into) {
  write_job("gpt", "text.txt");
  const Captured early = systole_.run({"data", "lengths", "job.yaml"});
  EXPECT_EQ(early.exit.code, 2) << early.err;
  EXPECT_TRUE(has(early.err, "hint: systole data build job.yaml\n")) << early.err;

  ASSERT_EQ(systole_.run({"data", "build", "job.yaml"}).exit.code, 0);
  const Node all = lengths({"job.yaml"});
  const Node shown = parse_json(systole_.run({"data", "show", "job.yaml", "--json"}).out, "out").value();
  const Node planned = parse_json(systole_.run({"plan", "job.yaml", "--json"}).out, "out").value();
  EXPECT_EQ(way(all, "packed").text_at("rows"), planned.find("epoch")->text_at("rows"));
  EXPECT_EQ(to_json(*shown.find("epoch")), to_json(*planned.find("epoch")));
  EXPECT_EQ(planned.find("epoch")->text_at("padding_share"), way(all, "packed").text_at("padding_share"));
  // A longer row costs more than in proportion, by its attention.
  const double padded = way(all, "padded to 64").find("model_flops")->as_double().value(),
               bucketed = way(all, "bucket").find("model_flops")->as_double().value();
  EXPECT_GT(padded / bucketed, way(all, "padded to 64").find("positions")->as_double().value() /
                                   way(all, "bucket").find("positions")->as_double().value());

  ASSERT_EQ(systole_.run({"plan", "job.yaml", "--out", "plan.json"}).exit.code, 0);
  const Node priced = lengths({"job.yaml", "--plan", "plan.json"});
  const double seconds = way(priced, "packed").find("seconds")->as_double().value();
  const Node plan = parse_json(systole_.run({"show", "plan.json", "--json"}).out, "out").value();
  EXPECT_GT(seconds, 0);
  EXPECT_NEAR(way(priced, "padded to 64").find("seconds")->as_double().value() / seconds,
              way(priced, "padded to 64").find("rows")->as_double().value() /
                  way(priced, "packed").find("rows")->as_double().value(),
              1e-9);
  EXPECT_FALSE(way(priced, "packed").find("dollars")) << "nothing is rented";

  write_job("gpt", "text.txt", ", packing: false");
  const Captured one = systole_.run({"data", "show", "job.yaml"});
  EXPECT_TRUE(has(one.out, " rows of 64 tokens, one text in each: ")) << one.out;
}

TEST_F(DataLengths, buckets_of_a_workload) {
  write_job("gpt", "text.txt", ", buckets: [2, 16, 40]");
  const Captured built = systole_.run({"data", "build", "job.yaml"});
  ASSERT_EQ(built.exit.code, 0) << built.err;
  EXPECT_TRUE(has(built.out, "bucket up to  rows  padding  rows a step  steps\n")) << built.out;
  EXPECT_TRUE(has(built.out, "; no row is in the bucket of 2\n")) << built.out;
  const Captured seen = systole_.run({"data", "show", "job.yaml"});
  EXPECT_TRUE(seen.out.ends_with(built.out)) << seen.out << built.out;
  const Node shown = *parse_json(systole_.run({"data", "show", "job.yaml", "--json"}).out, "out").value().find("epoch");
  const Node all = lengths({"job.yaml"});
  EXPECT_EQ(to_json(*all.find("edges")), "[2,16,40,64]") << "the workload's, and its context";
  EXPECT_EQ(way(all, "4 buckets").text_at("positions"), shown.text_at("positions"));
  EXPECT_EQ(to_json(*lengths({"job.yaml", "--edges", "32,64"}).find("edges")), "[32,64]");
  std::int64_t steps = 0;
  for (const Node& bucket : shown.find("buckets")->items()) {
    const std::int64_t rows = bucket.find("rows")->as_int(1).value(), edge = bucket.find("edge")->as_int(1).value(),
                       each = 2 * (64 / edge);
    steps += (rows + each - 1) / each;
  }
  EXPECT_EQ(shown.text_at("steps"), std::to_string(steps));

  write_job("gpt", "text.txt", ", buckets: auto, waste: 30%, shapes: 3");
  const Captured best = systole_.run({"data", "build", "job.yaml"});
  ASSERT_EQ(best.exit.code, 0) << best.err;
  EXPECT_FALSE(has(best.out, "no row")) << best.out;
  const Node found = *parse_json(systole_.run({"data", "show", "job.yaml", "--json"}).out, "out").value().find("epoch");
  EXPECT_LE(found.find("padding_share")->as_double().value(), 0.3);
  EXPECT_EQ(way(lengths({"job.yaml"}), "bucket").text_at("positions"), found.text_at("positions"));
  EXPECT_EQ(systole_.run({"data", "verify", "job.yaml"}).exit.code, 0) << "tables of both";
}

TEST_F(DataLengths, of_pairs_are_of_both_sides) {
  write_job("t5", "pairs.jsonl");
  ASSERT_EQ(systole_.run({"data", "build", "job.yaml"}).exit.code, 0);
  const Captured seen = systole_.run({"data", "lengths", "job.yaml"});
  EXPECT_EQ(seen.exit.code, 0) << seen.err;
  EXPECT_TRUE(has(seen.out, "job.yaml, inputs: ")) << seen.out;
  EXPECT_TRUE(has(seen.out, "job.yaml, targets: ")) << seen.out;
  EXPECT_FALSE(has(seen.out, "packed")) << seen.out;
}

TEST_F(DataLengths, check_says_how_much_is_padding) {
  const std::string gpu = "resources: { gpus_per_node: 1 }\n";
  write_job("gpt", "text.txt", ", packing: false", gpu);
  const Captured unknown = systole_.run({"check", "job.yaml"});
  EXPECT_EQ(unknown.exit.code, 0) << unknown.err;
  EXPECT_TRUE(has(unknown.err,
                  "data.packing: one text in each row of 64 tokens: an accelerator computes their padding "
                  "too"))
      << unknown.err;
  ASSERT_EQ(systole_.run({"data", "build", "job.yaml"}).exit.code, 0);
  const Captured known = systole_.run({"check", "job.yaml"});
  EXPECT_TRUE(has(known.err,
                  "% of what an accelerator computes is padding\n  hint: data.packing: true, or data.buckets: auto\n"))
      << known.err;
  EXPECT_FALSE(has(systole_.run({"check", "job.yaml", "--set", "data.packing=true"}).err, "padding"));
}

TEST_F(DataLengths, refusals) {
  systole_.write("h.csv", "20,1000\n300,5\n");
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
      {{"h.csv", "--edges", "128"},
       "--edges: rows of up to 300 would be in no bucket: the last edge is 128\n  hint: --edges 128,300, or --context "
       "128, which cuts longer texts into pieces\n"},
      {{"h.csv", "--edges", "256,128"},
       "--edges: 256,128 do not ascend from 1 or above\n  hint: --edges 128,256,512\n"},
      {{"h.csv", "--waste", "150%"}, "--waste: '150%' is no share of positions\n  hint: --waste 5%\n"},
      {{"none.csv"}, "none.csv"},
  };
  for (const auto& [words, message] : wrong) {
    std::vector<std::string> all{"data", "lengths"};
    all.insert(all.end(), words.begin(), words.end());
    const Captured seen = systole_.run(all);
    EXPECT_EQ(seen.exit.code, 2) << seen.out;
    EXPECT_TRUE(has(seen.err, message)) << seen.err;
  }
  EXPECT_EQ(systole_.run({"data", "lengths", "h.csv", "--edges", "128", "--context", "128"}).exit.code, 0);
}

}  // namespace
}  // namespace systole::cli
