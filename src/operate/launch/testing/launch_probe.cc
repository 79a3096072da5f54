// A rank and an agent for the tests of this folder.
//
//   launch_probe rank hold|finish|once          takes its seat, prints "up PID GENERATION", then
//     hold     waits for SIGTERM and exits with code 75
//     finish   waits for all ranks, and exits with code 0
//     once     holds in generation 1, finishes in later ones
//   launch_probe agent key=value...  PROGRAM ARGUMENTS...
//     runs an agent with the keys of options_from; prints "outcome CODE SENTENCE", and exits with the code

#include <signal.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <thread>

#include "ground/process/signal_watch.h"
#include "operate/launch/launch.h"
#include "operate/launch/rank_seat.h"

namespace {

using namespace systole;

void say(const std::string& text) { std::cout << text << std::endl; }

int run_rank(const std::string& what) {
  const SignalWatch watch;
  const Result<RankIdentity> identity = rank_identity_from_environment();
  if (!identity.ok()) {
    say(to_string(identity.error()));
    return kExitUsage;
  }
  RankSeatOptions options;
  if (const char* heartbeat = std::getenv("PROBE_HEARTBEAT")) options.heartbeat = Seconds(std::atof(heartbeat));
  options.lost = [](const Error& error) {
    say("lost: " + error.message);
    ::_exit(kExitNotSaved);
  };
  Result<std::unique_ptr<RankSeat>> seat = RankSeat::take(*identity, std::move(options));
  if (!seat.ok()) {
    say(to_string(seat.error()));
    return kExitUsage;
  }
  say(fmt::format("up {} {}", ::getpid(), identity->place.generation));
  const bool holds = what == "hold" || (what == "once" && identity->place.generation == 1);
  while (holds && !watch.stop_requested()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (holds) return kExitSaved;
  const Status all = (*seat)->wait_for_all("start", Seconds(60.0));
  if (!all.ok()) say(to_string(all.error()));
  return all.ok() ? kExitDone : kExitNotSaved;
}

template <typename T>
T number(const std::string& text) {
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

int run_agent(int argc, char** argv) {
  const SignalWatch watch;
  LaunchOptions options;
  int i = 0;
  bool follows = false;  // starts only once a leader listens
  for (; i < argc && std::strchr(argv[i], '=') != nullptr; ++i) {
    const std::string text = argv[i], key = text.substr(0, text.find('=')), value = text.substr(text.find('=') + 1);
    if (key == "node") options.node = value;
    if (key == "slots") options.slots = number<int>(value);
    if (key == "min") options.membership.min_ranks = number<int>(value);
    if (key == "max") options.membership.max_ranks = number<int>(value);
    if (key == "own") options.membership.own_ranks = value == "true";
    if (key == "rendezvous") options.rendezvous = parse_address(value).value();
    if (key == "token") options.token = RunToken::parse(value).value();
    if (key == "tls") options.tls = value == "true";
    if (key == "workload") options.workload = value;
    if (key == "follows") follows = value == "true";
    if (key == "logs") options.log_folder = value;
    if (key == "heartbeat") options.heartbeat = Seconds(number<double>(value));
  }
  if (follows && !connect_to(options.rendezvous, deadline_after(Seconds(60.0))).ok()) return kExitNo;
  for (; i < argc; ++i) options.command.argv.push_back(argv[i]);
  options.tell = [](std::string_view sentence) { say("tell " + std::string(sentence)); };
  options.line = [](int rank, std::string_view line) { say(fmt::format("[rank {}] {}", rank, line)); };
  options.stop = [&] { return LaunchStop{watch.count(), watch.signal()}; };
  const Result<LaunchOutcome> outcome = launch(std::move(options));
  if (!outcome.ok()) {
    say(to_string(outcome.error()));
    return kExitUsage;
  }
  say(fmt::format("outcome {} {}", outcome->exit_code, outcome->sentence));
  return outcome->exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 3 && std::strcmp(argv[1], "rank") == 0) return run_rank(argv[2]);
  if (argc >= 3 && std::strcmp(argv[1], "agent") == 0) return run_agent(argc - 2, argv + 2);
  return kExitUsage;
}
