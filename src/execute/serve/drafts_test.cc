#include "execute/serve/drafts.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

using Tokens = std::vector<std::int32_t>;

Tokens drafted(const Tokens& tokens, std::int64_t most) {
  Tokens drafts{99};
  draft_next(tokens, most, drafts);
  return drafts;
}

TEST(Drafts, are_what_followed_the_last_three_tokens) {
  const Tokens tokens{1, 2, 3, 4, 9, 5, 1, 2, 3};
  EXPECT_EQ(drafted(tokens, 2), (Tokens{4, 9}));
  EXPECT_EQ(drafted(tokens, 6), (Tokens{4, 9, 5, 1, 2, 3}));
  EXPECT_EQ(drafted(tokens, 8), (Tokens{4, 9, 5, 1, 2, 3, 4, 9})) << "and on with themselves";
  EXPECT_EQ(drafted(tokens, 0), Tokens{});
  EXPECT_EQ(drafted(tokens, -3), Tokens{});
}

TEST(Drafts, are_what_followed_two_where_three_are_new) {
  EXPECT_EQ(drafted({1, 2, 3, 4, 7, 2, 3}, 2), (Tokens{4, 7}));
  EXPECT_EQ(drafted({1, 2, 3, 5, 2, 3, 6, 1, 2, 3}, 1), Tokens{5}) << "three count for more than a later two";
}

TEST(Drafts, the_last_place_counts) { EXPECT_EQ(drafted({1, 2, 3, 4, 1, 2, 3, 5, 1, 2, 3}, 1), Tokens{5}); }

TEST(Drafts, of_a_circle_go_round) {
  EXPECT_EQ(drafted({7, 7, 7}, 3), (Tokens{7, 7, 7})) << "two of them overlap the last two";
  EXPECT_EQ(drafted({1, 2, 1, 2, 1, 2}, 5), (Tokens{1, 2, 1, 2, 1}));
}

TEST(Drafts, are_none_where_nothing_was_there_before) {
  for (const Tokens& tokens : {Tokens{}, {1}, {1, 1}, {1, 2, 3, 4}, {1, 2, 1}}) EXPECT_EQ(drafted(tokens, 4), Tokens{});
}

TEST(Drafts, sequences_share_the_room_and_pass_on_what_they_do_not_need) {
  const Tokens circle{7, 7, 7}, fresh{1, 2, 3};
  std::vector<DraftedSequence> sequences{{0, circle, 9}, {1, fresh, 9}, {2, circle, 1}, {3, circle, 9}};
  NgramDrafts().draft(sequences, 8).value();
  std::vector<std::size_t> sizes;
  for (const DraftedSequence& sequence : sequences) sizes.push_back(sequence.drafts.size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{2, 0, 1, 5}));
}

}  // namespace
}  // namespace systole
