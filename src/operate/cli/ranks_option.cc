#include "operate/cli/ranks_option.h"

namespace systole::cli {

void add_ranks_option(Subcommand command, ServingRanksArguments& ranks, bool machines) {
  command
      .add_option("--ranks", ranks.ranks,
                  "processes that hold the model together, each a part of every layer: as many as divide its heads of "
                  "keys and values. The answers are those of one process")
      .check(at_least(1))
      .capture_default_str();
  if (!machines) return;
  command.add_option("--rendezvous", ranks.rendezvous,
                     "host:port where the ranks of several machines meet; rank 0 listens there");
  command
      .add_option("--rank", ranks.rank,
                  "which of them this process is, with --rendezvous; 0 serves, the others hold their parts")
      .check(at_least(0))
      .capture_default_str();
  command.add_option("--ranks-token-file", ranks.token_file,
                     "file with the 32 hexadecimal digits that the ranks of several machines share");
  command.add_flag("--ranks-tls", ranks.tls, "TLS between the ranks of several machines; the same on all");
}

std::unique_ptr<ServingRanks> start_ranks(const ServingRanksArguments& ranks, const std::string& run,
                                          const RankMachine& machine) {
  if (ranks.ranks == 1 && ranks.rendezvous.empty() && ranks.rank == 0) return nullptr;
  return ServingRanks::start(ranks, run, machine).value();
}

void check_without_ranks(const ServingRanksArguments& ranks, bool given, const std::string& option) {
  if (ranks.ranks == 1 || !given) return;
  fail(error(ErrorKind::unsupported, "{} of a model that several ranks hold together", option)
           .hinted(fmt::format("leave out {} or --ranks", option)));
}

}  // namespace systole::cli
