#include "describe/serving/piece_choice.h"

#include <gtest/gtest.h>

namespace systole {
namespace {

using Piece = PieceChoice::Piece;

PieceChoice choice() { return PieceChoice({16, 64, 256, 512}, {1, 2, 4}); }

TEST(PieceChoice, what_nothing_is_known_of_is_the_least) {
  PieceChoice pieces = choice();
  EXPECT_EQ(pieces.within(Seconds(1000)), Piece{});
  EXPECT_EQ(pieces.least(), (Piece{16, 16}));
  EXPECT_EQ(pieces.decode_time(1), Seconds());
  pieces.ran(512, Seconds(300));
  EXPECT_EQ(pieces.within(Seconds(299)), Piece{}) << "shorter ones may take as long";
  EXPECT_EQ(pieces.within(Seconds(300)), (Piece{512, 512}));
  EXPECT_EQ(pieces.decode_time(1), Seconds(300)) << "as the least";
  EXPECT_EQ(pieces.least(), (Piece{16, 16}));
}

TEST(PieceChoice, the_least_is_what_takes_hardly_more_than_the_shortest) {
  PieceChoice pieces = choice();
  pieces.ran(16, Seconds(40));
  pieces.ran(64, Seconds(41));
  pieces.ran(256, Seconds(50));
  pieces.ran(512, Seconds(51));
  EXPECT_EQ(pieces.within(Seconds(39)), Piece{});
  EXPECT_EQ(pieces.least(), (Piece{256, 256}));
  pieces.ran(512, Seconds(30));
  pieces.ran(256, Seconds(30));
  EXPECT_EQ(pieces.least(), (Piece{16, 16})) << "its time is an old one";
}

TEST(PieceChoice, gives_the_longest_that_fits_and_as_many_as_fit) {
  PieceChoice pieces = choice();
  pieces.ran(16, Seconds(5));
  pieces.ran(64, Seconds(12));
  pieces.ran(200, Seconds(40));  // one of 256
  pieces.ran(512, Seconds(90));
  EXPECT_EQ(pieces.within(Seconds(4)), Piece{});
  EXPECT_EQ(pieces.within(Seconds(11)), (Piece{32, 16}));
  EXPECT_EQ(pieces.within(Seconds(39)), (Piece{192, 64}));
  EXPECT_EQ(pieces.within(Seconds(89)), (Piece{512, 256}));
  EXPECT_EQ(pieces.within(Seconds(90)), (Piece{512, 512}));
  EXPECT_EQ(pieces.time_of({100, 64}), Seconds(12 + 12)) << "36 tokens take a run of 64";
  EXPECT_EQ(pieces.time_of({140, 64}), Seconds(12 + 12 + 5));
}

// The decode of one row is a point of the line, too: 4 + 1 a token.
TEST(PieceChoice, lengths_that_have_not_run_lie_on_a_line_and_come_one_after_the_other) {
  PieceChoice pieces = choice();
  pieces.decoded(1, Seconds(5));
  pieces.ran(16, Seconds(20));
  EXPECT_EQ(pieces.within(Seconds(67)), (Piece{48, 16}));
  EXPECT_EQ(pieces.within(Seconds(1000)), (Piece{64, 64})) << "one, and none of 256 before it";
  pieces.ran(64, Seconds(68));
  EXPECT_EQ(pieces.within(Seconds(259)), (Piece{192, 64}));
  EXPECT_EQ(pieces.within(Seconds(260)), (Piece{256, 256}));
  pieces.ran(512, Seconds(1028));  // 2 a token beyond 64
  EXPECT_EQ(pieces.within(Seconds(450)), (Piece{384, 64})) << "256 lies between two: 68 and 960 × 192 / 448";
}

TEST(PieceChoice, believes_what_is_slower_at_once_and_what_is_faster_slowly) {
  PieceChoice pieces = choice();
  for (const double took : {100, 8, 16}) pieces.ran(16, Seconds(took));
  EXPECT_EQ(pieces.time_of({16, 16}), Seconds(16));
  pieces.ran(16, Seconds(8));
  EXPECT_EQ(pieces.time_of({16, 16}), Seconds(14));
  for (const double took : {100, 9}) pieces.ran(64, Seconds(took));
  EXPECT_EQ(pieces.time_of({64, 64}), Seconds(9)) << "the first time is no measure";
  pieces.decoded(2, Seconds(8));
  pieces.decoded(2, Seconds(16));
  EXPECT_EQ(pieces.decode_time(1), Seconds(16)) << "no more than two rows";
  EXPECT_EQ(pieces.decode_time(4), Seconds(16)) << "as far as it is known";
  pieces.ran(1000, Seconds(1000));
  EXPECT_EQ(pieces.within(Seconds(1000)), (Piece{256, 256})) << "no run is so long: nothing is known of 512";
}

// How many runs of 64 follow one that took `took` before the next longer is tried again, within 50.
int until_tried(PieceChoice& pieces, double took) {
  pieces.ran(256, Seconds(took));
  for (int runs = 0; runs < 10'000; ++runs) {
    if (pieces.within(Seconds(50)).run == 256) return runs;
    pieces.ran(64, Seconds(12));
  }
  return -1;
}

TEST(PieceChoice, one_slow_run_is_not_held_against_a_length_for_ever) {
  PieceChoice pieces = choice();
  pieces.ran(16, Seconds(5));
  pieces.ran(64, Seconds(12));
  EXPECT_EQ(until_tried(pieces, 1000), 65);
  EXPECT_EQ(until_tried(pieces, 45), 0) << "it fits now";
}

TEST(PieceChoice, what_stays_too_slow_is_tried_ever_less_often) {
  PieceChoice pieces = choice();
  pieces.ran(16, Seconds(5));
  pieces.ran(64, Seconds(12));
  EXPECT_EQ(until_tried(pieces, 60), 65);
  EXPECT_EQ(until_tried(pieces, 60), 129);
  EXPECT_EQ(until_tried(pieces, 60), 257);
}

}  // namespace
}  // namespace systole
