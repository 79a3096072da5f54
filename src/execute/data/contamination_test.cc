#include "execute/data/contamination.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

using Shared = Contamination::Shared;

class ContaminationOf : public testing::Test {
 protected:
  void SetUp() override {
    // The first shares "b c d e" in another spelling, the second nothing with wiki, the third is too short.
    write("held.txt", "a B, c  d -- E!\nv w x y z\none two\n");
    write("wiki.txt", "nothing of any of it, at all\nb c d e f g h i j k\nb c d e f too\n");
    write("code.jsonl", R"({"body": "w x y"})"
                        "\n"
                        R"({"body": "also W, x, y, z and b c d e"})"
                        "\n");
    write("suite.csv", "question,answer\nwhat is f g h i then?,no\n\"w x y z and b c d e\",yes\n");
  }
  void write(const std::string& path, const std::string& text) { write_whole(*store_, path, text).value(); }
  ComparedText text(const std::string& path, const std::string& field = "text") const {
    return {path, {store_.get(), {path}, "/"}, {.field = field}};
  }
  std::vector<Contamination> found(const std::vector<ComparedText>& looked_for,
                                   const std::vector<ComparedText>& training, ContaminationOptions options) const {
    return find_contamination(looked_for, training, options).value();
  }
  const std::unique_ptr<Store> store_ = make_memory_store();
};

TEST_F(ContaminationOf, each_text_in_the_training_text_of_each) {
  const std::vector<Contamination> all = found({text("held.txt"), text("suite.csv", "question")},
                                               {text("wiki.txt"), text("code.jsonl", "body")}, {.words = 4});
  const Contamination &held = all[0], &suite = all[1];
  EXPECT_EQ(held.documents, 2);
  EXPECT_EQ(held.too_short, 1);
  EXPECT_EQ(held.ngrams, 4);
  EXPECT_EQ(held.with, (std::vector<Shared>{{1, 1}, {2, 2}}));
  EXPECT_EQ(held.all, (Shared{2, 2})) << "a run that both have counts once";
  EXPECT_EQ(suite.documents, 2);
  EXPECT_EQ(suite.ngrams, 4 + 6);
  EXPECT_EQ(suite.with, (std::vector<Shared>{{2, 2}, {1, 6}}));
  EXPECT_EQ(suite.all, (Shared{2, 7}));
  EXPECT_EQ(found({text("held.txt")}, {text("wiki.txt")}, {.words = 13})[0].documents, 0);
}

TEST_F(ContaminationOf, the_worst_documents_are_named_and_where_their_text_is) {
  const std::vector<Contamination> all =
      found({text("held.txt"), text("suite.csv", "question")}, {text("wiki.txt"), text("code.jsonl", "body")},
            {.words = 4, .worst = 1});
  ASSERT_EQ(all[1].worst.size(), 1U);
  const Contamination::Worst& worst = all[1].worst[0];
  EXPECT_EQ(to_string(worst.place), "/suite.csv, record 1");
  EXPECT_EQ(worst.ngrams, 6);
  EXPECT_EQ(worst.found, 6);
  EXPECT_EQ(worst.training, 1U);
  EXPECT_EQ(to_string(worst.there), "/code.jsonl:2") << "one run of the six is in wiki.txt before";
  EXPECT_EQ(worst.found_there, 5);
  EXPECT_EQ(to_string(all[0].worst[0].place), "/held.txt:1");
  EXPECT_EQ(to_string(all[0].worst[0].there), "/wiki.txt:2") << "the first that has it";
}

TEST_F(ContaminationOf, documents_that_a_text_does_not_take_are_in_neither) {
  ComparedText held = text("wiki.txt"), rest = held;
  held.takes = [](std::string_view text) { return text.ends_with("too"); };
  rest.takes = [](std::string_view text) { return !text.ends_with("too"); };
  const Contamination one = found({held}, {rest}, {.words = 5})[0];
  EXPECT_EQ(one.documents, 1);
  EXPECT_EQ(one.ngrams, 2);
  EXPECT_EQ(one.all, (Shared{1, 1})) << "not the document itself";
}

// Over many units of text, in parts: which thread finds what first is not seen.
TEST_F(ContaminationOf, threads_find_what_one_finds) {
  std::string many, train, other;
  for (int i = 0; i < 9'000; ++i) {
    const int a = i * 7919 % 1009, b = i * 50021 % 4001;
    if (i % 30 == 0)
      many += fmt::format("the {} of {} is {} or {} in all of the many words here\n", a, b, i % 7, a + b);
    train += fmt::format("{} we say the {} of {} is {} here and so on without an end to any of it\n", i, a, b, i % 7);
    other += fmt::format("{{\"text\": \"{} is {} or {} in all of what they say in so many ways again and again\"}}\n",
                         b, i % 7, a + b);
  }
  write("many.txt", many);
  write("train.txt", train);
  write("other.jsonl", other);
  ComparedText half = text("train.txt");
  half.takes = [](std::string_view text) { return text.size() % 2 == 0; };
  const auto compare = [&](int threads) {
    return found({text("many.txt")}, {half, text("other.jsonl"), text("train.txt")},
                 {.words = 5, .threads = threads, .worst = 500, .memory = Bytes(60'000)})[0];
  };
  const Contamination one = compare(1);
  EXPECT_EQ(one.documents, 300);
  EXPECT_GT(one.with[0].documents, 50);
  EXPECT_GT(one.with[2].documents, one.with[0].documents);
  for (const int threads : {2, 3, 8}) {
    const Contamination several = compare(threads);
    EXPECT_EQ(several.all, one.all);
    EXPECT_EQ(several.with, one.with);
    ASSERT_EQ(several.worst.size(), one.worst.size());
    for (std::size_t i = 0; i < one.worst.size(); ++i) {
      EXPECT_EQ(several.worst[i].place, one.worst[i].place);
      EXPECT_EQ(several.worst[i].there, one.worst[i].there);
      EXPECT_EQ(several.worst[i].found_there, one.worst[i].found_there);
    }
  }
}

TEST_F(ContaminationOf, little_memory_only_takes_more_readings) {
  std::string many, train;
  for (int i = 0; i < 300; ++i) {
    many += fmt::format("the {} of {} is {} or {}\n", i, i * 7919 % 300, i % 7, i * i);
    if (i % 3 == 0) train += fmt::format("say the {} of {} is {} yes\n", i, i * 7919 % 300, i % 7);
  }
  write("many.txt", many);
  write("train.txt", train);
  const auto compare = [&](Bytes memory) {
    return found({text("many.txt")}, {text("train.txt")}, {.words = 3, .worst = 400, .memory = memory})[0];
  };
  const Contamination whole = compare(kGiB), in_parts = compare(kKiB);
  EXPECT_EQ(whole.documents, 300);
  EXPECT_EQ(in_parts.documents, 300);
  EXPECT_GE(whole.all.documents, 100) << "each third";
  EXPECT_LT(whole.all.documents, 300);
  EXPECT_EQ(in_parts.all, whole.all);
  EXPECT_EQ(in_parts.with, whole.with);
  ASSERT_EQ(in_parts.worst.size(), whole.worst.size());
  for (std::size_t i = 0; i < whole.worst.size(); ++i) {
    EXPECT_EQ(in_parts.worst[i].place, whole.worst[i].place);
    EXPECT_EQ(in_parts.worst[i].there, whole.worst[i].there);
  }
}

}  // namespace
}  // namespace systole
