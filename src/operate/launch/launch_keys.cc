#include "operate/launch/launch_keys.h"

#include "ground/base/number_from.h"

namespace systole {
namespace {

constexpr const char* kOrders[] = {"run", "stop", "kill", "end"};
constexpr std::size_t kMostRanks = 65'536;

// Removes and returns the next word of a line; empty at its end.
std::string_view next_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

}  // namespace

// "run GENERATION SIGNAL CODE RANKS", the sentence, and a line "SLOT NODE" for each rank.
std::string to_text(const LaunchPlan& plan) {
  std::string sentence = plan.outcome.sentence;
  for (char& c : sentence) {
    if (c == '\n') c = ' ';
  }
  std::string text = fmt::format("{} {} {} {} {}\n{}\n", kOrders[static_cast<int>(plan.order)], plan.generation,
                                 plan.signal, plan.outcome.exit_code, plan.ranks.size(), sentence);
  for (const RankSlot& slot : plan.ranks) text += fmt::format("{} {}\n", slot.index, slot.node);
  return text;
}

Result<LaunchPlan> parse_plan(std::string_view text) {
  const Error broken = error(ErrorKind::corrupt, "the rendezvous holds no plan of a launch");
  LaunchPlan plan;
  std::string_view head = next_line(text);
  const std::string_view order = next_word(head);
  int place = 0;
  while (place < 4 && order != kOrders[place]) ++place;
  const auto generation = number_from<std::uint64_t>(next_word(head));
  const auto signal = number_from<int>(next_word(head)), code = number_from<int>(next_word(head));
  const auto ranks = number_from<std::size_t>(next_word(head));
  if (place == 4 || !generation || !signal || !code || !ranks || *ranks > kMostRanks) return broken;
  plan.order = static_cast<LaunchPlan::Order>(place);
  plan.generation = *generation;
  plan.signal = *signal;
  plan.outcome = {*code, std::string(next_line(text))};
  for (std::size_t i = 0; i < *ranks; ++i) {
    std::string_view line = next_line(text);
    const auto slot = number_from<int>(next_word(line));
    if (!slot || line.empty()) return broken;
    plan.ranks.push_back({std::string(line), *slot});
  }
  return plan;
}

std::string to_text(const LeaderName& leader) { return leader.node + "\n" + leader.version; }

LeaderName parse_leader(std::string_view text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  return {std::string(text.substr(0, end)), std::string(text.substr(std::min(end + 1, text.size())))};
}

std::string to_text(const NodeOffer& offer) { return fmt::format("{} {} {}", offer.slots, offer.host, offer.workload); }

std::optional<NodeOffer> parse_offer(std::string_view text) {
  const auto slots = number_from<int>(next_word(text));
  const std::string_view host = next_word(text);
  if (!slots || *slots < 0 || host.empty()) return std::nullopt;
  return NodeOffer{*slots, std::string(host), std::string(text)};
}

std::string exit_text(const RankExited& exit) { return fmt::format("{} {}", exit.code, exit.signal); }

std::optional<RankExited> parse_exit(std::uint64_t generation, std::string_view key, std::string_view value) {
  key.remove_prefix(std::min(exits_key(generation).size(), key.size()));
  const auto rank = number_from<int>(key), code = number_from<int>(next_word(value)),
             signal = number_from<int>(next_word(value));
  if (!rank || !code || !signal) return std::nullopt;
  return RankExited{generation, *rank, *code, *signal};
}

}  // namespace systole
