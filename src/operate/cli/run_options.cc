#include "operate/cli/run_options.h"

#include <cstdlib>
#include <string_view>

#include "operate/cli/options.h"

namespace systole::cli {

void add_run_arguments(Subcommand command, RunArguments& arguments) {
  command.add_option("--inject", arguments.inject,
                     "hold the run up on purpose: data=50ms@10,compute=20ms (places: data, compute, logging, "
                     "checkpoint); kill=PHASE@3 kills it");
  command.add_option("--chaos", arguments.chaos,
                     "kill, stop and delay ranks by chance, as this hazard file says: docs/guide/many-ranks.md");
  const char* eager = std::getenv("SYSTOLE_EAGER");
  arguments.eager = eager != nullptr && *eager != '\0' && std::string_view(eager) != "0";
  command.add_flag(
      "--eager", arguments.eager,
      "look at every value as it is made, slowly: the ops of the first step are listed, and the first value "
      "that is no number ends the run with its name; SYSTOLE_EAGER=1 says the same");
  command.add_option("--metrics", arguments.metrics,
                     "serve the metrics of rank 0 as Prometheus reads them, at http://[HOST:]PORT/metrics; without a "
                     "host to this machine alone");
  command.add_flag("--in-process", arguments.in_process, "ranks are threads of this process");
  command.add_option("--wait", arguments.wait,
                     "how long to wait for another process that works on the run, as 10min; without: not at all");
  command.add_flag("--dry-run", arguments.dry_run, "plan and check all that can be checked, start nothing");
}

void add_rank_arguments(Subcommand command, RankArguments& arguments) {
  command.add_option("--ranks", arguments.ranks,
                     "processes that run together: 4, or 2:8, where ranks may die, hang or join; without: one a GPU");
  command.add_option("--local-ranks", arguments.local, "of those at most on this node; without: its GPUs, else all")
      .check(at_least(1));
  command.add_option("--rendezvous", arguments.rendezvous,
                     "host:port where the agents of several nodes meet; the one that can listen there leads");
  command.add_option("--token-file", arguments.token_file,
                     "file with the 32 hexadecimal digits that all nodes of a run share");
  command.add_option("--node", arguments.node, "this node's name among them; without: its host name");
  command.add_flag("--follow", arguments.follows, "never lead, though this node could listen at --rendezvous");
  command.add_option("--host", arguments.host,
                     "where the other nodes reach this one; without: the address from which it reaches the rendezvous");
  command.add_option("--max-restarts", arguments.restarts, "generations that may be started again within an hour")
      .check(at_least(0))
      .capture_default_str();
}

void add_budget_arguments(Subcommand command, BudgetArguments& arguments) {
  command.add_option("--budget-time", arguments.time,
                     "machine time that objective.budget buys, as 3600s, by whoever starts it and knows the price");
  command.add_option("--ledger", arguments.ledger,
                     "file in which whoever starts it notes when its machines were held; without: RUN/ledger");
}

}  // namespace systole::cli
