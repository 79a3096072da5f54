#include "operate/explain/request_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ground/base/counted.h"
#include "ground/draw/text_table.h"

namespace systole {
namespace {

struct KnownPart {
  const char *name, *meaning, *advice;
};
// In the order in which a request passes them.
constexpr KnownPart kParts[] = {
    {"receive", "the request comes in", "clients send slowly, or over a slow network"},
    {"turn", "waits to be read",
     "requests are read one at a time, and others are before it: send tokens instead of long texts, or serve more "
     "--replicas"},
    {"encode", "its text becomes tokens", "send tokens instead of long texts, or repeat schemas instead of new ones"},
    {"queue", "waits to begin", "all slots are taken, or the cache is full: more --slots, or more --replicas"},
    {"wait", "waits for the computation of others",
     "prompts of others come in between: a smaller --tpot, or more --replicas"},
    {"prefill", "its prompt is computed",
     "shorter prompts, prompts that begin with the same text, whose keys and values are kept, or a faster device"},
    {"decode", "its tokens are computed",
     "each token reads all weights: --weights int8, --speculate ngram:4, or a device with more bandwidth"},
    {"sample", "its tokens are drawn", "drawing costs more than computing: simpler grammars, fewer logprobs"},
    {"vectors", "its texts are computed", "shorter texts, fewer in a request, or a faster device"},
    {"text", "its vectors are written", "ask for fewer dimensions, or for base64"},
    {"send", "the answer leaves", "clients read slowly, or over a slow network"},
    {"handle", "anything else", "the server itself is slow"},
};

const KnownPart* known(std::string_view name) {
  const auto* found = std::ranges::find_if(kParts, [&](const KnownPart& part) { return part.name == name; });
  return found == std::end(kParts) ? nullptr : found;
}

// Of the nearest rank: a time that was measured.
double quantile(std::vector<double> values, double q) {
  const auto rank = static_cast<std::ptrdiff_t>(std::ceil(q * static_cast<double>(values.size()))) - 1;
  const auto at = values.begin() + std::max<std::ptrdiff_t>(rank, 0);
  std::ranges::nth_element(values, at);
  return *at;
}

double sum(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

std::string percent(double share) { return fmt::format("{:.0f}%", 100 * share); }

std::optional<double> number_at(const Node& node, std::string_view key) {
  const Node* found = node.find(key);
  if (found == nullptr) return std::nullopt;
  const Result<double> number = found->as_double();
  return number.ok() ? std::optional(*number) : std::nullopt;
}

bool is_true(const Node& node, std::string_view key) { return node.text_at(key) == "true"; }

}  // namespace

bool RequestReport::add(std::string_view line) {
  const Result<Node> parsed = parse_json(line, "line");
  const Node record = parsed.ok() ? *parsed : Node::map();
  const Node* parts = record.find("parts_s");
  constexpr double kNone = -1;
  const double total = number_at(record, "total_s").value_or(kNone),
               status = number_at(record, "status").value_or(kNone);
  if (parts == nullptr || !parts->is_map() || total < 0 || status < 0) {
    ++unreadable_;
    return false;
  }
  const bool answered = parts->find("queue") != nullptr;  // by the model
  if (is_true(record, "gone")) {
    ++gone_;
  } else if (status >= 400) {
    ++refused_;
  } else if (!answered) {
    ++others_;
  } else {
    for (const Node::Entry& part : parts->entries()) {
      std::vector<double>& times = parts_[part.key];
      times.resize(totals_.size() + 1);
      times.back() = number_at(*parts, part.key).value_or(0);
    }
    totals_.push_back(total);
    for (auto& [name, times] : parts_) times.resize(totals_.size());
    if (const std::optional<double> first = number_at(record, "first_token_s")) first_tokens_.push_back(*first);
  }
  return true;
}

// The slowest twentieth, one at least.
std::vector<std::size_t> RequestReport::slowest() const {
  std::vector<std::size_t> order(totals_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(), [&](std::size_t i) { return totals_[i]; });
  order.resize(std::max<std::size_t>(order.size() / 20, 1));
  return order;
}

std::vector<RequestReport::Part> RequestReport::parts() const {
  const std::vector<std::size_t> slow = slowest();
  const auto sum_of_slow = [&](const std::vector<double>& times) {
    double of = 0;
    for (const std::size_t i : slow) of += times[i];
    return of;
  };
  const double all = sum(totals_), of_slow = sum_of_slow(totals_);
  const auto part_of = [&](const std::string& name, const std::vector<double>& times) {
    return Part{name, quantile(times, 0.5), quantile(times, 0.95), all > 0 ? sum(times) / all : 0,
                of_slow > 0 ? sum_of_slow(times) / of_slow : 0};
  };
  std::vector<Part> found;
  for (const KnownPart& part : kParts)
    if (const auto times = parts_.find(part.name); times != parts_.end())
      found.push_back(part_of(times->first, times->second));
  for (const auto& [name, times] : parts_)
    if (known(name) == nullptr) found.push_back(part_of(name, times));
  return found;
}

std::string RequestReport::why(const std::vector<Part>& parts) const {
  const Part& usual = *std::ranges::max_element(parts, {}, &Part::p50);
  const Part& most = *std::ranges::max_element(parts, {}, &Part::share);
  const Part& slow = *std::ranges::max_element(parts, {}, &Part::slow_share);
  const double median = quantile(totals_, 0.5);
  const bool many = totals_.size() >= 20;
  std::string text = fmt::format("A request takes {} at the median, {} of it in {}", to_string(Seconds(median)),
                                 percent(median > 0 ? usual.p50 / median : 0), usual.name);
  if (many)
    text += fmt::format("; the slowest 5% take {} and more, {} of it in {}",
                        to_string(Seconds(quantile(totals_, 0.95))), percent(slow.slow_share), slow.name);
  else if (most.name != usual.name)
    text += fmt::format("; {} of the time of all is in {}", percent(most.share), most.name);
  const KnownPart* part = known(many ? slow.name : most.name);
  return text + (part == nullptr ? "." : fmt::format(": {}.", part->advice));
}

std::string RequestReport::text(int width) const {
  std::vector<std::vector<std::string>> rows;
  const auto row = [&](const std::string& name, double p50, double p95, const std::string& share, const char* meaning) {
    rows.push_back({name, to_string(Seconds(p50)), to_string(Seconds(p95)), share, meaning});
  };
  const std::vector<Part> all = parts();
  for (const Part& part : all) {
    const KnownPart* of = known(part.name);
    row(part.name, part.p50, part.p95, percent(part.share), of == nullptr ? "" : of->meaning);
  }
  row("total", quantile(totals_, 0.5), quantile(totals_, 0.95), "100%", "the first byte in to the last byte out");
  if (!first_tokens_.empty())
    row("first token", quantile(first_tokens_, 0.5), quantile(first_tokens_, 0.95), "", "since the first byte");
  std::string head = counted(requests(), "request");
  if (gone_ > 0) head += fmt::format("; the client of {} left", gone_);
  if (refused_ > 0) head += fmt::format("; {} refused or failed", refused_);
  if (unreadable_ > 0) head += fmt::format("; {} unreadable", counted(unreadable_, "line"));
  return fmt::format("{}\n\n{}\n{}\n", head, table({"part", "p50>", "p95>", "of all time>", "meaning"}, rows, width),
                     why(all));
}

Node RequestReport::node() const {
  const std::vector<Part> all = parts();
  std::vector<Node> rows;
  for (const Part& part : all)
    rows.push_back(Node::map({{"part", part.name},
                              {"p50_s", part.p50},
                              {"p95_s", part.p95},
                              {"share", part.share},
                              {"slow_share", part.slow_share}}));
  Node node = Node::map({{"requests", requests()},
                         {"refused", refused_},
                         {"gone", gone_},
                         {"unreadable_lines", unreadable_},
                         {"total_p50_s", quantile(totals_, 0.5)},
                         {"total_p95_s", quantile(totals_, 0.95)},
                         {"parts", Node::sequence(std::move(rows))},
                         {"why", why(all)}});
  if (!first_tokens_.empty())
    node.set("first_token_p50_s", quantile(first_tokens_, 0.5)).set("first_token_p95_s", quantile(first_tokens_, 0.95));
  return node;
}

}  // namespace systole
