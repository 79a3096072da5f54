#include "describe/spec/flight.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

namespace systole {
namespace {

const FlightIdentity kRank{17, 2, 4, 3, 99, Seconds(5.0)};

StageTimes times(Seconds forward, Seconds waiting) {
  StageTimes t{};
  at(t, RankStage::forward) = forward;
  at(t, RankStage::waiting) = waiting;
  return t;
}

TEST(FlightLogs, say_where_a_rank_is) {
  FlightLog log(kRank);
  log.set_step(12);
  log.enter(RankStage::backward, Seconds(6.0));
  const int site = log.add_site("all_reduce f32[8] over data");
  log.in_site(site, 41, Seconds(6.5));
  log.awaits(3, true, 77, Seconds(6.75));
  log.spent(RankStage::forward, Seconds(0.5));
  log.spent(RankStage::forward, Seconds(0.25));
  log.mark(FlightMark::connected, Seconds(5.5));
  log.mark(FlightMark::connected, Seconds(9.0));
  const Flight flight = log.read();
  EXPECT_EQ(flight.identity.rank, 2);
  EXPECT_EQ(flight.identity.launch, 99u);
  EXPECT_EQ(flight.now.stage, RankStage::backward);
  EXPECT_EQ(flight.now.step, 12);
  EXPECT_EQ(flight.now.awaited, 3);
  EXPECT_TRUE(flight.now.to_send);
  EXPECT_EQ(flight.now.position, 77u);
  ASSERT_EQ(flight.now.site, site);
  EXPECT_EQ(flight.sites[0].name, "all_reduce f32[8] over data");
  EXPECT_EQ(flight.now.sequence, 41u);
  EXPECT_EQ(at(flight.totals, RankStage::forward), Seconds(0.75));
  EXPECT_EQ(flight.marks[0], Seconds(5.5)) << "the first time counts";
  EXPECT_FALSE(flight.has(FlightMark::first_step));
}

TEST(FlightLogs, keep_the_last_steps_and_all_of_the_sums) {
  FlightLog log(kRank);
  for (std::int64_t step = 1; step <= kFlightSteps + 5; ++step)
    log.step_ended(step, Seconds(static_cast<double>(step)), times(Seconds(0.5), Seconds(0.25)));
  const Flight flight = log.read();
  EXPECT_EQ(flight.steps, kFlightSteps + 5);
  ASSERT_EQ(flight.recent.size(), static_cast<std::size_t>(kFlightSteps));
  EXPECT_EQ(flight.recent.front().step, 6);
  EXPECT_EQ(flight.recent.back().step, kFlightSteps + 5);
  EXPECT_EQ(own_time(flight.recent.back().seconds), Seconds(0.5));
  EXPECT_EQ(whole_time(flight.recent.back().seconds), Seconds(0.75));
}

TEST(FlightLogs, have_a_place_for_what_has_none) {
  FlightLog log(kRank);
  for (int site = 0; site < kFlightSites + 9; ++site) {
    const int place = log.add_site(std::string(300, 'x'));
    EXPECT_EQ(place, std::min(site, kFlightSites - 1));
    log.left_site(place, Seconds(0.5), Seconds(0.125));
  }
  const Flight flight = log.read();
  ASSERT_EQ(flight.sites.size(), static_cast<std::size_t>(kFlightSites));
  EXPECT_EQ(flight.sites.back().name, "all others");
  EXPECT_EQ(flight.sites.back().runs, 10);
  EXPECT_EQ(flight.sites.back().waited, Seconds(5.0));
  EXPECT_EQ(flight.sites.back().longest, Seconds(0.5));
  EXPECT_EQ(flight.sites.front().name.size(), 95u);
}

TEST(FlightLogs, outlive_a_kill) {
  const std::string path = (std::filesystem::temp_directory_path() / fmt::format("flight-{}.log", getpid())).string();
  const pid_t child = fork();
  if (child == 0) {
    auto log = FlightLog::create(path, kRank);
    if (!log.ok()) _exit(1);
    (*log)->enter(RankStage::update, Seconds(7.0));
    (*log)->failed("no reason", ErrorCode::flipped_bit);
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const Flight flight = parse_flight(read_words(path).value(), path).value();
  EXPECT_EQ(flight.now.stage, RankStage::update);
  EXPECT_EQ(flight.failed, "no reason");
  EXPECT_EQ(flight.code, ErrorCode::flipped_bit);
  EXPECT_EQ(FlightLog::create(path, kRank).error().kind, ErrorKind::exists);
  std::filesystem::remove(path);
}

TEST(FlightLogs, what_is_none_is_refused) {
  EXPECT_EQ(parse_flight({}, "x").error().kind, ErrorKind::corrupt);
  EXPECT_EQ(parse_flight(std::vector<std::uint64_t>(5000, 7), "x").error().kind, ErrorKind::corrupt);
}

}  // namespace
}  // namespace systole
