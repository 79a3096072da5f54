// A disk that is full for one rank, as on one of several hosts: the run ends with a sentence that names the rank and
// the missing space. Once there is space, it goes on from the previous checkpoint to the same bits.

#include "laws/ranked_job.h"

namespace systole::laws {
namespace {

class FullDisk : public RankedRuns {
 protected:
  static constexpr std::int64_t kSteps = 40;
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }
};

TEST_F(FullDisk, of_one_rank_ends_the_run_with_its_name_and_it_resumes) {
  const std::vector<std::string> three{"--ranks", "3", "--set", "train.batch=6"};
  ASSERT_EQ(shop_.systole(words("whole", three)).exit.code, 0);
  std::vector<std::string> full = three;
  full.insert(full.end(), {"--inject", "rank1.full=2"});
  const Captured ended = shop_.systole(words("full", full));
  EXPECT_EQ(ended.exit.code, 1) << ended.err;
  EXPECT_TRUE(has(ended.err, "[rank 1] error: the disk is full: the checkpoint of step 8 takes ")) << ended.err;
  EXPECT_TRUE(has(ended.err, "the run can go on from its checkpoint of step 4")) << ended.err;
  EXPECT_TRUE(has(ended.err, "[rank 1]   hint: free space")) << ended.err;
  EXPECT_TRUE(has(ended.err, "rank 1 ended with exit code 1")) << ended.err;
  const Captured resumed = shop_.systole({"resume", "full", "--ranks", "3"});
  EXPECT_EQ(resumed.exit.code, 0) << resumed.err;
  EXPECT_EQ(shop_.not_resumed("full", 4), "");
  EXPECT_EQ(shop_.state_hash("full", kSteps), shop_.state_hash("whole", kSteps));
}

}  // namespace
}  // namespace systole::laws
