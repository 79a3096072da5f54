// torchrun, also as `python -m torch.distributed.run`: Systole's agent replaces its agent, its ranks stay.
#include <algorithm>

#include "operate/import/flags.h"
#include "operate/import/launchers.h"

namespace systole {
namespace {

using Value = FlagValue;

constexpr Flag::Takes kNothing = Flag::Takes::nothing, kValue = Flag::Takes::value;
constexpr std::string_view kMeeting = "the agents of the nodes find each other by themselves";
constexpr std::string_view kLogs = "each rank's lines are kept with the run: systole logs";

void nodes(Draft& draft, const Value& value) {
  if (const auto range = range_of(draft, value, ':')) draft.ask(&RequestedResources::nodes, *range, value.from);
}

void ranks(Draft& draft, const Value& value) {
  if (value.text == "gpu" || value.text == "auto" || value.text == "cpu")
    return draft.left_out(value.from, "how many that are is known there alone: resources.gpus_per_node says it");
  if (const auto n = count_of(draft, value)) draft.ask(&RequestedResources::launched_per_node, *n, value.from);
}

constexpr Flag kFlags[] = {
    {"nnodes", '\0', kValue, nodes},
    {"nproc-per-node", '\0', kValue, ranks},
    {"standalone", '\0', kNothing, nullptr, ""},
    {"node-rank", '\0', kValue, nullptr, kMeeting},
    {"rdzv-backend", '\0', kValue, nullptr, kMeeting},
    {"rdzv-endpoint", '\0', kValue, nullptr, kMeeting},
    {"rdzv-id", '\0', kValue, nullptr, kMeeting},
    {"rdzv-conf", '\0', kValue, nullptr, kMeeting},
    {"master-addr", '\0', kValue, nullptr, kMeeting},
    {"master-port", '\0', kValue, nullptr, kMeeting},
    {"local-addr", '\0', kValue, nullptr, kMeeting},
    {"max-restarts", '\0', kValue, nullptr,
     "systole run --max-restarts; ranks.retries is how often its cluster begins it again"},
    {"monitor-interval", '\0', kValue, nullptr, "the agent sees a rank that ends at once"},
    {"start-method", '\0', kValue, nullptr, "ranks are processes of their own"},
    {"event-log-handler", '\0', kValue, nullptr, "events are in the run's folder"},
    {"role", '\0', kValue, nullptr, "all ranks are of one role"},
    {"log-dir", '\0', kValue, nullptr, kLogs},
    {"redirects", 'r', kValue, nullptr, kLogs},
    {"tee", 't', kValue, nullptr, kLogs},
    {"logs-specs", '\0', kValue, nullptr, kLogs},
    {"local-ranks-filter", '\0', kValue, nullptr, kLogs},
    {"duplicate-stdout-filters", '\0', kValue, nullptr, kLogs},
    {"duplicate-stderr-filters", '\0', kValue, nullptr, kLogs},
    {"numa-binding", '\0', kValue, nullptr, "ranks are bound to no cores"},
    {"signals-to-handle", '\0', kValue, nullptr, "the agent handles TERM and INT"},
    {"virtual-local-rank", '\0', kNothing, nullptr, "LOCAL_RANK is the rank's own"},
    {"shutdown-timeout", '\0', kValue, nullptr, "ranks.notice is the time to save in"},
    {"use-env", '\0', kNothing, nullptr, ""},
    {"run-path", '\0', kNothing, nullptr, "runpy's way of starting it", true},
    {"module", 'm', kNothing, nullptr, ""},
    {"no-python", '\0', kNothing, nullptr, ""},
};

}  // namespace

void read_torchrun(std::span<const ShellWord> words, const Setup& setup, Draft& draft) {
  std::string from = "torchrun";
  for (const ShellWord& word : words) from += " " + word.raw;
  // Two of its flags define how the program is called.
  std::vector<ParsedFlag> seen;
  const std::vector<ShellWord> rest = read_flags(words, {kFlags}, {.program = "torchrun", .seen = &seen}, draft);
  const auto is_seen = [&](std::string_view name) {
    return std::ranges::find(seen, name, &ParsedFlag::name) != seen.end();
  };
  const bool module = is_seen("module"), bare = is_seen("no-python");
  if (rest.empty()) return set_command({}, setup, from, draft);
  std::vector<ShellWord> command;
  if (!bare) command = {plain_word("python3"), plain_word("-u")};
  if (module) command.push_back(plain_word("-m"));
  command.insert(command.end(), rest.begin(), rest.end());
  set_command(std::move(command), setup, from, draft);
}

}  // namespace systole
