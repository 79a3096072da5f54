// Faults of ranks and their agent. Each ends in a run that goes on to the same bits, or in one clear sentence with the
// rank's name; within a time limit, and with nothing left behind (RankedRuns::TearDown).

#include <sys/socket.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "ground/base/philox.h"
#include "ground/net/socket.h"
#include "laws/ranked_job.h"
#include "operate/observe/rank_files.h"

namespace systole::laws {
namespace {

class SurvivedFaults : public RankedRuns {
 protected:
  static constexpr std::int64_t kSteps = 40;
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }
  std::string undisturbed(const std::vector<std::string>& more) {
    const Captured ran = shop_.systole(words("whole", more));
    EXPECT_EQ(ran.exit.code, 0) << ran.err;
    return shop_.state_hash("whole", kSteps);
  }
};

TEST_F(SurvivedFaults, kill_minus_nine_of_any_rank_or_the_agent_at_any_moment) {
  const int trials = is_long() ? 200 : 3;
  const std::string whole = undisturbed({"--ranks", "2"});
  PhiloxStream draw(test_seed(), 5);
  for (int t = 0; t < trials; ++t) {
    const std::string run = fmt::format("k{}", t);
    const int victim = static_cast<int>(draw.next_u32() % 3);  // 2: the agent
    const double after = draw.next_u32() % 3000 * 1e-3;
    Process agent = start(run, words(run, {"--ranks", "2", "--inject", "compute=15ms"}));
    std::this_thread::sleep_for(std::chrono::duration<double>(after));
    const pid_t pid = victim == 2 ? agent.pid() : pid_of_rank(agent.pid(), victim);
    if (pid > 0 && !agent.has_ended()) ::kill(pid, SIGKILL);
    const std::optional<Exit> exit = agent.wait(Seconds(90.0));
    ASSERT_TRUE(exit) << "it hangs after a kill of " << victim << " at " << after << " s\n" << said(run);
    std::string told = said(run);
    if (victim == 2 && exit->signal == SIGKILL) {
      const bool began = std::filesystem::exists(shop_.path(run + "/workload.yaml"));
      Captured again =
          began ? shop_.systole({"resume", run, "--ranks", "2"}) : shop_.systole(words(run + "b", {"--ranks", "2"}));
      told += again.err;
      ASSERT_EQ(again.exit.code, 0) << "agent killed after " << after << " s\n" << told;
      EXPECT_EQ(shop_.state_hash(began ? run : run + "b", kSteps), whole);
    } else {
      ASSERT_EQ(exit->code, 0) << "rank " << victim << " killed after " << after << " s\n" << told;
      EXPECT_EQ(shop_.state_hash(run, kSteps), whole) << told;
    }
    std::filesystem::remove_all(shop_.path(run));
  }
  note(fmt::format("{} kills of a rank or the agent, within 3 s of the start: the same bits", trials));
}

// A pause shorter than the heartbeat is harmless; after a longer one (the long form: 30 s) the rank is replaced.
TEST_F(SurvivedFaults, a_rank_that_stands_still_for_a_while) {
  const std::string whole = undisturbed({"--ranks", "2"});
  for (const double still : is_long() ? std::vector<double>{2.5, 30} : std::vector<double>{2.5}) {
    const std::string run = fmt::format("still{}", still > 10);
    Process agent = start(run, words(run, {"--ranks", "2", "--inject", "compute=20ms"}));
    ASSERT_TRUE(wait_for_step(agent, run, 8)) << said(run);
    const pid_t pid = pid_of_rank(agent.pid(), 1);
    ASSERT_GT(pid, 0);
    ASSERT_EQ(::kill(pid, SIGSTOP), 0);
    std::this_thread::sleep_for(std::chrono::duration<double>(still));
    ::kill(pid, SIGCONT);
    const std::optional<Exit> exit = agent.wait(Seconds(60.0));
    ASSERT_TRUE(exit && exit->code == 0) << said(run);
    EXPECT_TRUE(has(said(run), "rank 1 is stuck")) << said(run);
    EXPECT_EQ(has(said(run), "generation 2"), still > 10) << said(run);
    EXPECT_EQ(shop_.state_hash(run, kSteps), whole);
  }
}

TEST_F(SurvivedFaults, a_rank_that_keeps_the_others_waiting_is_named_and_the_run_goes_on_without_its_patience) {
  const std::string whole = undisturbed({"--ranks", "3", "--set", "train.batch=6"});
  Process agent = start("stuck", words("stuck", {"--ranks", "3", "--set", "train.batch=6", "--set", "ranks.patience=4s",
                                                 "--inject", "rank2.stuck=backward@9,compute=20ms"}));
  const std::optional<Exit> exit = agent.wait(Seconds(60.0));
  ASSERT_TRUE(exit && exit->code == 0) << said("stuck");
  EXPECT_TRUE(has(said("stuck"), "rank 2 is stuck: in backward of step 9")) << said("stuck");
  EXPECT_TRUE(has(said("stuck"), "in step 9: rank ")) << said("stuck");
  EXPECT_TRUE(has(said("stuck"), "waited 4.0")) << said("stuck");
  std::optional<Recovered> recovered;
  for (const Event& event : agent_events("stuck"))
    if (const auto* back = std::get_if<Recovered>(&event.body)) recovered = *back;
  ASSERT_TRUE(recovered) << said("stuck");
  EXPECT_GE(recovered->detected.count(), 3.9) << "since rank 2 stands still, not since the others gave up";
  EXPECT_EQ(recovered->from_step.value_or(-1) + recovered->steps_lost.value_or(-1), 8) << said("stuck");
  EXPECT_EQ(shop_.state_hash("stuck", kSteps), whole);
}

TEST_F(SurvivedFaults, a_rank_that_computes_no_number_is_named_with_the_op) {
  const Captured ran =
      shop_.systole(words("nan", {"--ranks", "3", "--set", "train.batch=6", "--inject", "rank1.nan=7"}));
  EXPECT_EQ(ran.exit.code, 1) << ran.err;
  const std::size_t at = ran.err.find("rank 1: step 7, forward of microbatch 0");
  ASSERT_NE(at, std::string::npos) << ran.err;
  EXPECT_TRUE(has(ran.err.substr(at), " makes nan of ")) << ran.err;
  EXPECT_FALSE(has(ran.err, "rank 0: step 7")) << ran.err;
  EXPECT_FALSE(has(ran.err, "rank 2: step 7")) << ran.err;
}

TEST_F(SurvivedFaults, a_flipped_bit_is_found_before_it_is_used) {
  const std::string whole = undisturbed({"--ranks", "2"});
  const Captured ran =
      shop_.systole(words("flip", {"--ranks", "2", "--set", "observe.replay_check=1", "--inject", "rank1.flip=11"}));
  EXPECT_EQ(ran.exit.code, 0) << ran.err;
  EXPECT_TRUE(has(ran.err, "rank 1 is not to be trusted: step 11 computed twice gives two gradient/")) << ran.err;
  EXPECT_EQ(shop_.state_hash("flip", kSteps), whole);
  // Without the check it goes unnoticed: that is its purpose.
  const Captured unseen = shop_.systole(words("unseen", {"--ranks", "2", "--inject", "rank1.flip=11"}));
  EXPECT_EQ(unseen.exit.code, 0) << unseen.err;
  EXPECT_NE(shop_.state_hash("unseen", kSteps), whole);
}

// The flight log of a rank killed in a collective has the earlier ones: an injected fault does not replace an observer.
TEST_F(SurvivedFaults, a_rank_killed_in_a_gather_leaves_word_of_it) {
  const Captured ran = shop_.systole(words(
      "gather", {"--ranks", "2", "--set", "mesh={fsdp: 2}", "--max-restarts", "0", "--inject", "rank1.kill=gather@9"}));
  EXPECT_NE(ran.exit.code, 0) << ran.err;
  EXPECT_TRUE(has(ran.err, "rank 1 was killed by SIGKILL")) << ran.err;
  const std::unique_ptr<Store> store = open_posix_store(shop_.path("gather")).value();
  const std::string folder = rank_folder(1) + "/flight";
  const std::string file = shop_.path("gather/" + folder + "/" + store->list(folder).value().back());
  const Flight flight = parse_flight(read_words(file).value(), file).value();
  std::int64_t gathers = 0;
  for (const FlightSite& site : flight.sites) gathers += site.name.starts_with("all_gather ") ? site.runs : 0;
  EXPECT_GT(gathers, 0);
}

TEST_F(SurvivedFaults, a_truncated_chunk_is_walked_back_from) {
  const std::string whole = undisturbed({"--ranks", "2"});
  Process agent = start("cut", words("cut", {"--ranks", "2", "--inject", "compute=10ms"}));
  ASSERT_TRUE(wait_for_step(agent, "cut", 14)) << said("cut");
  agent.signal(SIGTERM).value();
  ASSERT_EQ(agent.wait().code, 75) << said("cut");
  const std::int64_t saved = shop_.newest_saved("cut");
  const std::string manifest = shop_.path("cut/checkpoints/");
  std::filesystem::path newest;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(manifest)) {
    if (!entry.is_regular_file() || entry.file_size() < 4096) continue;
    if (newest.empty() || entry.last_write_time() > std::filesystem::last_write_time(newest)) newest = entry.path();
  }
  ASSERT_FALSE(newest.empty());
  std::filesystem::resize_file(newest, std::filesystem::file_size(newest) / 2);
  const Captured resumed = shop_.systole({"resume", "cut", "--ranks", "2"});
  ASSERT_EQ(resumed.exit.code, 0) << resumed.err;
  EXPECT_TRUE(has(resumed.out + resumed.err, "was passed over: ")) << resumed.out << resumed.err;
  EXPECT_GT(shop_.turns("cut").back().from_step, 0) << "there is an older one";
  EXPECT_LT(shop_.turns("cut").back().from_step, saved);
  EXPECT_EQ(shop_.state_hash("cut", kSteps), whole) << resumed.err;
}

TEST_F(SurvivedFaults, two_launches_in_one_folder) {
  Process first = start("one", words("one", {"--ranks", "2", "--inject", "compute=30ms"}));
  ASSERT_TRUE(wait_for_step(first, "one", 3)) << said("one");
  const Captured run = shop_.systole(words("one", {"--ranks", "2"}));
  EXPECT_NE(run.exit.code, 0);
  EXPECT_TRUE(has(run.err, "'one'") && has(run.err, "hint:")) << run.err;
  const Captured resume = shop_.systole({"resume", "one", "--ranks", "2"});
  EXPECT_NE(resume.exit.code, 0);
  EXPECT_TRUE(has(resume.err, "'one'") || has(resume.err, "one/")) << resume.err;
  const std::optional<Exit> exit = first.wait(Seconds(60.0));
  EXPECT_TRUE(exit && exit->code == 0) << said("one");
}

TEST_F(SurvivedFaults, a_port_that_another_program_has) {
  const ListeningSocket other = listen_on({"127.0.0.1", 0}).value();
  shop_.write_secret("token", "00112233445566778899aabbccddeeff\n");
  std::jthread mute([&](const std::stop_token& stop) {  // accepts connections and sends nothing valid
    while (!stop.stop_requested()) {
      const Fd fd(::accept4(other.fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (fd.get() >= 0) (void)!::send(fd.get(), "220 mail\r\n", 10, MSG_NOSIGNAL);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  const Captured ran = shop_.systole(
      words("port", {"--ranks", "2", "--local-ranks", "2", "--rendezvous", fmt::format("127.0.0.1:{}", other.port),
                     "--token-file", "token", "--node", "a", "--host", "127.0.0.1"}),
      Seconds(60.0));
  EXPECT_NE(ran.exit.code, 0);
  EXPECT_TRUE(has(ran.err, fmt::format("127.0.0.1:{}", other.port))) << ran.err;
}

TEST_F(SurvivedFaults, a_rehearsal_by_chance_ends_as_if_nothing_had_been) {
  const int ranks = is_long() ? 8 : 2;
  const std::string number = std::to_string(ranks);
  const std::string whole = undisturbed({"--ranks", number});
  shop_.write("hazard.yaml",
              "systole-chaos: 1\nseed: 3\nmean_time_between: 2s\nmost: 3\nkinds:\n  kill: 2\n  stop: { weight: 1, for: "
              "500ms }\n  delay: { weight: 1, for: 100ms }\n");
  const Captured ran = shop_.systole(
      words("chaos", {"--ranks", number, "--chaos", "hazard.yaml", "--inject", "compute=60ms"}), Seconds(180.0));
  ASSERT_EQ(ran.exit.code, 0) << ran.err;
  EXPECT_TRUE(has(ran.err, "chaos: ")) << ran.err;
  EXPECT_EQ(shop_.state_hash("chaos", kSteps), whole);
  shop_.write("wrong.yaml", "systole-chaos: 1\nmean_time_between: 2s\nkinds: { kil: 1 }\n");
  const Captured refused = shop_.systole(words("refused", {"--ranks", "2", "--chaos", "wrong.yaml"}));
  EXPECT_EQ(refused.exit.code, 2);
  EXPECT_TRUE(has(refused.err, "wrong.yaml:3:10")) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(shop_.path("refused")));
  const Captured alone = shop_.systole(words("alone", {"--chaos", "hazard.yaml"}));
  EXPECT_EQ(alone.exit.code, 2) << alone.err;
}

TEST_F(SurvivedFaults, a_loss_without_a_checkpoint_says_that_it_begins_from_the_start) {
  Process agent =
      start("none", words("none", {"--ranks", "2", "--inject", "compute=20ms", "--set", "checkpoint.every=1000"}));
  ASSERT_TRUE(wait_for_step(agent, "none", 9)) << said("none");
  ASSERT_EQ(::kill(pid_of_rank(agent.pid(), 1), SIGKILL), 0);
  EXPECT_EQ(agent.wait().code, 0) << said("none");
  EXPECT_TRUE(has(said("none"), ", from the start, as there is no checkpoint, ")) << said("none");
  EXPECT_FALSE(has(said("none"), "no checkpoint, 0 steps again")) << said("none");
}

// Each part has a name, and their sum is the elapsed time.
TEST_F(SurvivedFaults, seconds_from_a_kill_to_the_next_step_have_names) {
  Process agent = start("back", words("back", {"--ranks", "2", "--inject", "compute=20ms"}));
  ASSERT_TRUE(wait_for_step(agent, "back", 9)) << said("back");
  const auto killed = std::chrono::steady_clock::now();
  ASSERT_EQ(::kill(pid_of_rank(agent.pid(), 1), SIGKILL), 0);
  std::optional<Recovered> recovered;
  ASSERT_TRUE(wait_until(agent, [&] {
    for (const Event& event : agent_events("back")) {
      if (const auto* back = std::get_if<Recovered>(&event.body)) recovered = *back;
    }
    return recovered.has_value();
  })) << said("back");
  const double passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - killed).count();
  EXPECT_EQ(agent.wait().code, 0) << said("back");
  EXPECT_EQ(recovered->generation, 2);
  EXPECT_TRUE(has(recovered->cause, "rank 1 was killed by SIGKILL")) << recovered->cause;
  for (const Seconds part : {recovered->ended, recovered->restarted, recovered->restored, recovered->stepped})
    EXPECT_GE(part.count(), 0);
  EXPECT_GT(recovered->restarted.count(), 0);
  EXPECT_TRUE(has(said("back"), fmt::format(", from the checkpoint of step {}, {} step",
                                            recovered->from_step.value_or(-1), recovered->steps_lost.value_or(-1))))
      << said("back");
  EXPECT_GE(recovered->from_step.value_or(-1) + recovered->steps_lost.value_or(-1), 9) << "what had ended";
  EXPECT_LT(recovered->total().count(), passed + 0.1);
  EXPECT_GT(recovered->total().count(), passed - 1.0) << "seen within a second of its end";
  const Captured why = shop_.systole({"why", "back"});
  EXPECT_TRUE(has(why.out, "generation 2, after rank 1 was killed by SIGKILL: ")) << why.out;
  note(
      fmt::format("from the kill of a rank of two to the next step {:.2f} s: detected {}, ended {}, restarted {}, "
                  "restored {}, first step {}",
                  recovered->total().count(), to_string(recovered->detected), to_string(recovered->ended),
                  to_string(recovered->restarted), to_string(recovered->restored), to_string(recovered->stepped)));
}

}  // namespace
}  // namespace systole::laws
