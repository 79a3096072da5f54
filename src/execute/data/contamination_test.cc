#include "execute/data/contamination.h"

#include <gtest/gtest.h>

#include "execute/data/build.h"

namespace systole {
namespace {

TEST(Contamination, CountsTheRunsOfWordsThatTrainingHasToo) {
  const std::unique_ptr<Store> texts = make_memory_store(), out = make_memory_store();
  // The first shares "b c d e" in another spelling, the second nothing, the third is too short.
  write_whole(*texts, "held.txt", "a B, c  d -- E!\nv w x y z\none two\n").value();
  write_whole(*texts, "train.txt", "b c d e f g h i j k\nthe others are not held out, all of them\n").value();
  write_whole(*texts, "more.txt", "w x y\nanother source has w, x, y, z and more\n").value();
  BuildOptions build;
  build.train = {texts.get(), {"train.txt"}, ""};
  build.held_out = TextFiles{texts.get(), {"held.txt"}, ""};
  build.tokenizer.vocabulary = 300;
  build.sequence_length = 16;
  const Dataset first = build_dataset(*out, build).value();
  build.train.paths = {"more.txt"};
  build.held_out.reset();
  build.may_hold_none_out = true;
  build.tokenizer_model = first.tokenizer.model();
  const Dataset second = build_dataset(*out, build).value();

  const std::vector<TokensManifest> alone{first.manifest}, both{first.manifest, second.manifest};
  const Contamination one = find_contamination(*out, alone, first.tokenizer, 4).value()[0];
  EXPECT_EQ(one.documents, 2);
  EXPECT_EQ(one.touched, 1);
  EXPECT_EQ(one.ngrams, 4);
  EXPECT_EQ(one.found, 1);
  const std::vector<Contamination> two = find_contamination(*out, both, first.tokenizer, 4).value();
  EXPECT_EQ(two[0].touched, 2) << "by another source's training text";
  EXPECT_EQ(two[0].found, 2);
  EXPECT_EQ(two[1].documents, 0);
  EXPECT_EQ(find_contamination(*out, both, first.tokenizer, 13).value()[0].documents, 0);
}

}  // namespace
}  // namespace systole
