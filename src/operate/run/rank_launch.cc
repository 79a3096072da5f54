#include "operate/run/rank_launch.h"

#include <csignal>

#include "ground/base/files.h"
#include "ground/base/number_from.h"
#include "ground/base/text_file.h"
#include "ground/base/version.h"
#include "ground/process/machine.h"

namespace systole {
namespace {

constexpr int kMostRanks = 65'536;

Result<int> count(std::string_view text) {
  if (const std::optional<int> n = number_from<int>(text); n && *n >= 1 && *n <= kMostRanks) return *n;
  return error(ErrorKind::invalid, "--ranks: '{}' is no number of ranks", text).hinted("--ranks 4, or --ranks 2:8");
}

// One rank per GPU. Device files of other drivers are not counted.
int num_gpus() {
  int n = 0;
  while (path_exists("/dev/nvidia" + std::to_string(n))) ++n;
  return n;
}

std::string make_token(const std::string& file) {
  return fmt::format(
      "make one, and copy it to every node: (umask 077; od -An -tx1 -N16 /dev/urandom | tr -d ' \\n' > {})", file);
}

Result<RunToken> read_token(const std::string& path) {
  Result<std::string> text = read_secret_file(path, kKiB * 4);
  if (!text.ok()) {
    Error why = std::move(text).error();
    why.message = "--token-file: " + why.message;
    if (why.kind == ErrorKind::not_found) why.hint = make_token(path);
    return why;
  }
  text->resize(text->find_last_not_of(" \r\n") + 1);
  Result<RunToken> token = RunToken::parse(*text);
  if (token.ok()) return token;
  return error(ErrorKind::invalid, "'{}': {}", path, token.error().message).hinted(make_token(path));
}

}  // namespace

Result<RankRange> read_ranks(const std::string& given) {
  if (given.empty()) return RankRange{};
  const std::string_view text = given;
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) {
    const int n = TRY(count(text));
    return RankRange{n, n};
  }
  const int least = TRY(count(text.substr(0, colon))), most = TRY(count(text.substr(colon + 1)));
  if (least <= most) return RankRange{least, most};
  return error(ErrorKind::invalid, "--ranks: {} is above {}", least, most)
      .hinted(fmt::format("--ranks {}:{}", most, least));
}

std::int64_t machines_of(const RankArguments& arguments, std::int64_t ranks) {
  if (arguments.rendezvous.empty()) return 1;
  const std::int64_t here = std::max(arguments.local, 1);
  return (ranks + here - 1) / here;
}

Result<LaunchOptions> launch_options(const RankArguments& arguments, const std::string& folder, SignalWatch& signals,
                                     std::function<void(const std::string&)> message) {
  LaunchOptions options;
  options.version = kSystoleVersion;
  options.begins = [&signals] { signals.hold(); };
  const int gpus = num_gpus(), here = arguments.local > 0 ? arguments.local : gpus;
  const RankRange range =
      arguments.ranks.empty() ? RankRange{std::max(here, 1), std::max(here, 1)} : TRY(read_ranks(arguments.ranks));
  options.membership.min_ranks = range.least;
  options.membership.max_ranks = range.most;
  options.membership.restarts_per_hour = arguments.restarts;
  options.slots = std::max(here, 1);
  if (!arguments.rendezvous.empty()) {
    options.rendezvous = TRY(parse_address(arguments.rendezvous));
    if (options.rendezvous.port == 0) {
      return error(ErrorKind::invalid, "--rendezvous needs a port that all nodes know")
          .hinted("--rendezvous host:7000");
    }
    options.follows = arguments.follows;
    options.host = arguments.host.empty() ? TRY(own_address_towards(options.rendezvous)) : arguments.host;
    if (arguments.host.empty() && is_loopback(options.host) && !is_loopback(options.rendezvous.host)) {
      return error(ErrorKind::invalid, "--rendezvous {}: here '{}' is {}, where no other node reaches this one",
                   arguments.rendezvous, options.rendezvous.host, options.host)
          .hinted("this node's address in place of its name, or another line for it in /etc/hosts");
    }
    options.node = arguments.node.empty() ? host_name() : arguments.node;
    if (arguments.token_file.empty()) {
      return error(ErrorKind::invalid, "a run on several nodes needs the token that they share")
          .hinted("--token-file FILE; " + make_token("FILE"));
    }
    options.token = TRY(read_token(arguments.token_file));
  } else if (!arguments.token_file.empty() || !arguments.node.empty() || !arguments.host.empty()) {
    return error(ErrorKind::invalid, "--token-file, --node and --host are for several nodes")
        .hinted("add --rendezvous host:port, or take them out");
  } else if (arguments.local == 0 && gpus == 0) {
    options.slots = range.most;
  }
  options.log_folder = folder;
  options.tell = [message](std::string_view sentence) { message(std::string(sentence)); };
  options.line = [message = std::move(message)](int rank, std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    line.remove_prefix(line.rfind('\r') + 1);  // what a terminal shows of a progress bar that redraws itself
    message(fmt::format("[rank {}] {}", rank, line));
  };
  // Ranks get only signals that they handle: a user's program would end at once by an unexpected SIGHUP or SIGUSR1.
  options.stop = [&signals] { return LaunchStop{signals.count(), signals.signal() == SIGINT ? SIGINT : SIGTERM}; };
  return options;
}

void heed_preemption(LaunchOptions& options, const PreemptionWatch& preemption) {
  options.stop = [stop = options.stop, tell = options.tell, &preemption, told = false]() mutable {
    LaunchStop asked = stop();
    const bool leaves = preemption.announced();
    if (leaves && !told) tell("this machine is about to be taken away: the run saves and stops");
    told = leaves;
    if (leaves && asked.count == 0) asked = {1, SIGTERM};
    return asked;
  };
}

}  // namespace systole
