// `probe:` shows values of a run: they are part of its plan, and showing them changes no bit.

#include <gtest/gtest.h>

#include "ground/base/testing/files.h"
#include "laws/process_job.h"

namespace systole::laws {
namespace {

std::vector<std::string> run(const std::string& folder, const std::vector<std::string>& sets) {
  std::vector<std::string> words = {"run", "job.yaml", "--folder", folder, "--set", "train.steps=4"};
  for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
  return words;
}

TEST(Probe, shows_values_that_are_planned_and_changes_no_bit) {
  const Workshop shop;
  // Not exact: then a microbatch is half the batch, not a part of a logical shard.
  ASSERT_EQ(shop.systole(run("plain", {"train.exact=false"})).exit.code, 0);
  const Captured probed = shop.systole(
      run("probed", {"train.exact=false", "probe.values=[block.*.attn.norm, logits, gradients, embed.tokens]",
                     "probe.every=2", "probe.save=block.0.attn.norm"}));
  ASSERT_EQ(probed.exit.code, 0) << probed.err;
  EXPECT_EQ(shop.state_hash("probed", 4), shop.state_hash("plain", 4));
  EXPECT_EQ(shop.unplanned_work("probed", 4), "");
  for (const char* line : {"step 2  block.0.attn.norm ", "step 4  block.1.attn.norm ", "step 2  logits ",
                           "step 4  gradient/blocks.1.attn.q", "step 2  embed.tokens "})
    EXPECT_NE(probed.out.find(line), std::string::npos) << line << "\n" << probed.out;
  EXPECT_EQ(probed.out.find("step 3  "), std::string::npos);
  EXPECT_EQ(probed.out.find("block.0.attn.q "), std::string::npos);
  EXPECT_NE(text_of(shop.path("probed/probes/4.jsonl")).find("\"name\":\"logits\""), std::string::npos);
  // 3 rows of 32 tokens, width 32: a bf16 tensor, stored as f32 for NumPy.
  const std::string npy = text_of(shop.path("probed/probes/2/block.0.attn.norm.npy"));
  EXPECT_EQ(npy.substr(1, 5), "NUMPY");
  EXPECT_NE(npy.find("'descr': '<f4', 'fortran_order': False, 'shape': (3,32,32,)"), std::string::npos);
  EXPECT_EQ(npy.size() % 64, 0u);
  EXPECT_EQ(npy.size(), 128u + 3 * 32 * 32 * 4);
}

TEST(Probe, of_a_single_layer) {
  const Workshop shop;
  const Captured probed = shop.systole(run("one", {"probe.values=block.1.mlp.act", "probe.every=1"}));
  ASSERT_EQ(probed.exit.code, 0) << probed.err;
  EXPECT_NE(probed.out.find("step 1  block.1.mlp.act "), std::string::npos) << probed.out;
  EXPECT_EQ(probed.out.find("block.0.mlp.act"), std::string::npos);
  EXPECT_EQ(shop.unplanned_work("one", 4), "");
}

TEST(Probe, a_name_that_is_none_is_refused_with_the_nearest) {
  const Workshop shop;
  const Captured refused = shop.systole(run("none", {"probe.values=[block.*.atn.norm, logits]"}));
  EXPECT_EQ(refused.exit.code, 2);
  EXPECT_NE(refused.err.find("no value of the model is named 'block.*.atn.norm'"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("block.0.attn.norm"), std::string::npos) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(shop.path("none")));
}

}  // namespace
}  // namespace systole::laws
