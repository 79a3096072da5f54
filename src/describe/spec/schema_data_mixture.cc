// Keys of `data.mixture`: several sources of text, and in what proportion they are drawn from. A source takes the keys
// of data.train, whose own values are its defaults, and two of its own: weight and epochs.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "describe/spec/codec_parts.h"
#include "describe/spec/schema.h"
#include "ground/base/nearest.h"

namespace systole {
namespace {

using Source = MixtureSpec::Source;
using Phase = MixtureSpec::Phase;
constexpr const char* kTrain = "data.train.";
constexpr double kLeastWeight = 1e-12, kMostWeight = 1e12;

Error in_key(Error error, const std::string& key) {
  error.message = fmt::format("{}: {}", key, error.message);
  return error;
}

Result<double> read_weight(const Node& node, bool zero) {
  const double weight = TRY(node.as_double());
  if (weight >= kLeastWeight && weight <= kMostWeight) return weight;
  if (weight == 0 && zero) return weight;
  return error(ErrorKind::invalid, "{} is no weight", node.text())
      .at(node.where())
      .hinted(weight == 0 ? "above 0; leave the source out to draw nothing from it"
                          : "above 0, such as 3 or 0.5; from 1e-12 to 1e12");
}

std::vector<std::string> names_of_train() {
  std::vector<std::string> names = schema().names_under("data.train");
  names.insert(names.end(), {"weight", "epochs"});
  return names;
}

// One key of a source. `scratch`: a workload whose data.train is the source's text.
Status read_of_source(const Node::Entry& given, Source& source, Workload& scratch) {
  if (given.key == "weight") {
    source.weight = TRY(read_weight(given.value, false));
    return Done{};
  }
  if (given.key == "epochs") {
    source.epochs = TRY(read_count(given.value, 1, 1'000'000));
    return Done{};
  }
  const Key* key = schema().key(kTrain + given.key);
  if (key != nullptr && applies(*key, scratch)) return key->codec.read(given.value, scratch);
  return error(ErrorKind::invalid, "no key of a source")
      .coded(ErrorCode::unknown_key)
      .at(given.where())
      .hinted(nearest_hint(given.key, names_of_train()));
}

bool is_name(const std::string& name) {
  return !name.empty() && name != "from" && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

Status read_sources(const Node& node, Workload& w) {
  constexpr const char* kWanted = "a map of sources by name, such as { wiki: { files: wiki/*.txt, weight: 3 } }";
  if (!node.is_map() || node.entries().empty()) return node.wrong(kWanted);
  std::vector<Source> sources;
  for (const Node::Entry& entry : node.entries()) {
    if (!is_name(entry.key))
      return error(ErrorKind::invalid, "'{}' is no name of a source", entry.key)
          .at(entry.where())
          .hinted("letters, digits, '_', '-' and '.'; not 'from', which the schedule has");
    if (!entry.value.is_map())
      return in_key(entry.value.wrong("a map of its keys, such as { files: wiki/*.txt, weight: 3 }"), entry.key);
    Source source{entry.key, {}, {}, {}};
    Workload scratch = w;
    scratch.data.train.files.clear();
    for (const Node::Entry& given : entry.value.entries())
      if (Status read = read_of_source(given, source, scratch); !read.ok())
        return in_key(std::move(read).error(), entry.key + "." + given.key);
    if (scratch.data.train.files.empty())
      return error(ErrorKind::invalid, "{}: it names no files", entry.key)
          .at(entry.where())
          .hinted(fmt::format("{}: {{ files: {}/*.txt }}", entry.key, entry.key));
    source.text = std::move(scratch.data.train);
    sources.push_back(std::move(source));
  }
  w.data.mixture.sources = std::move(sources);
  return Done{};
}

// Keys in which a source's text is as data.train are left out.
Node sources_node(Workload& w) {
  Node node;
  Workload scratch = w;
  for (const Source& source : w.data.mixture.sources) {
    Node map = Node::map();
    scratch.data.train = source.text;
    for (const std::string& name : schema().names_under("data.train")) {
      const Key& key = *schema().key(kTrain + name);
      if (!applies(key, scratch)) continue;
      const Node value = key.codec.write(scratch);
      if (!value.is_null() && value != key.codec.write(w)) map.set(name, value);
    }
    if (source.weight) map.set("weight", *source.weight);
    if (source.epochs) map.set("epochs", *source.epochs);
    node.set(source.name, std::move(map));
  }
  return node;
}

Result<Portion> read_portion(const Node& node) {
  Workload scratch;
  TRY(portion_codec(AT(train.optimizer.decay)).read(node, scratch));
  return scratch.train.optimizer.decay;
}

Result<Phase> read_phase(const Node& node, const std::vector<Source>& sources) {
  if (!node.is_map()) return node.wrong("a phase, such as { from: 60%, wiki: 1, code: 3 }");
  std::vector<std::string> names;
  for (const Source& source : sources) names.push_back(source.name);
  const Node* from = node.find("from");
  if (from == nullptr)
    return error(ErrorKind::invalid, "nothing says from which step these weights are")
        .at(node.where())
        .hinted("from: 0 for the first phase, a number of steps or a share as 60% for the others");
  Phase phase{TRY(read_portion(*from)), std::vector<double>(sources.size(), -1)};
  for (const Node::Entry& entry : node.entries()) {
    if (entry.key == "from") continue;
    const auto found = std::ranges::find(names, entry.key);
    if (found == names.end())
      return error(ErrorKind::invalid, "there is no source '{}'", entry.key)
          .at(entry.where())
          .hinted(nearest_hint(entry.key, names));
    phase.weights[static_cast<std::size_t>(found - names.begin())] = TRY(read_weight(entry.value, true));
  }
  for (std::size_t s = 0; s < names.size(); ++s)
    if (phase.weights[s] < 0)
      return error(ErrorKind::invalid, "no weight of the source '{}'", names[s])
          .at(node.where())
          .hinted(fmt::format("{}: 0 draws nothing from it in this phase", names[s]));
  if (std::ranges::all_of(phase.weights, [](double weight) { return weight == 0; }))
    return error(ErrorKind::invalid, "no source has a weight in this phase").at(node.where()).hinted("one above 0");
  return phase;
}

Status read_schedule(const Node& node, Workload& w) {
  if (!node.is_sequence() || node.items().empty())
    return node.wrong("a list of phases, such as [ { from: 0, wiki: 3, code: 1 }, { from: 60%, wiki: 1, code: 3 } ]");
  std::vector<Phase> phases;
  for (const Node& item : node.items()) phases.push_back(TRY(read_phase(item, w.data.mixture.sources)));
  w.data.mixture.schedule = std::move(phases);
  return Done{};
}

Node schedule_node(Workload& w) {
  const MixtureSpec& mixture = w.data.mixture;
  Node node;
  for (const Phase& phase : mixture.schedule) {
    Node map = Node::map();
    map.set("from",
            phase.from.fraction > 0 ? Node(fmt::format("{}%", phase.from.fraction * 100)) : Node(phase.from.steps));
    for (std::size_t s = 0; s < mixture.sources.size(); ++s) map.set(mixture.sources[s].name, phase.weights[s]);
    node.push(std::move(map));
  }
  return node;
}

class Check {
 public:
  Check(const Workload& workload, std::vector<BrokenRule>& broken)
      : w_(workload), mixture_(workload.data.mixture), broken_(broken) {}

  void all() {
    const bool text = w_.data.kind == DataSpec::Kind::text;
    if (!w_.data.train.files.empty())
      refuse("data.train.files", "data.train.files and data.mixture exclude each other: the files are the sources'",
             "take data.train.files out; its other keys are the defaults of the sources");
    if (text && !w_.data.held_out.files.empty())
      refuse("data.held_out.files", "of a mixture, a share of every source is held out, by hash",
             "data.held_out.fraction: 5% in place of the files");
    if (w_.data.drop_remainder)
      refuse("data.drop_remainder", "a mixture has no epochs that end for all sources at once", "take it out");
    weights();
    epochs();
    schedule();
  }

 private:
  void refuse(const char* key, std::string message, std::string hint) {
    broken_.push_back({{key, "data.mixture.sources"}, ErrorKind::invalid, std::move(message), std::move(hint)});
  }

  void weights() {
    const auto given = std::ranges::count_if(mixture_.sources, [](const Source& s) { return s.weight.has_value(); });
    if (given > 0 && !mixture_.schedule.empty())
      refuse("data.mixture.schedule", "the sources have weights, and the schedule has others", "take one of them out");
    if (given == 0 || static_cast<std::size_t>(given) == mixture_.sources.size()) {
      if (mixture_.temperature != 1 && (given > 0 || !mixture_.schedule.empty()))
        refuse("data.mixture.temperature", "the weights are given, and a temperature makes them from sizes",
               "take it out, or the weights");
      return;
    }
    const auto without = std::ranges::find_if(mixture_.sources, [](const Source& s) { return !s.weight; });
    refuse("data.mixture.sources", fmt::format("the source '{}' has no weight, and others have", without->name),
           "a weight for each of them; or for none: then they are drawn by size");
  }

  void epochs() {
    const bool limited = std::ranges::any_of(mixture_.sources, [](const Source& s) { return s.epochs.has_value(); });
    const bool repeats = mixture_.exhausted == MixtureSpec::Exhausted::repeat;
    if (limited && repeats)
      refuse("data.mixture.exhausted", "repeat, and a source has a limit of epochs",
             "data.mixture.exhausted: rescale goes on without it, stop ends the run's data; or take epochs out");
    if (!limited && !repeats)
      refuse("data.mixture.exhausted", "no source is ever exhausted: none has a limit of epochs",
             "epochs: 1 in the sources that are not to repeat");
  }

  void schedule() {
    const std::optional<std::int64_t>& steps = w_.train.steps;
    std::int64_t before = -1;
    for (const Phase& phase : mixture_.schedule) {
      if (phase.from.fraction > 0 && !steps)
        return refuse("data.mixture.schedule", "a share of the run's steps, and train.steps does not say how many",
                      "from: a number of steps, or train.steps");
      const std::int64_t from = steps_of(phase.from, steps.value_or(0));
      if (before < 0 && from != 0)
        return refuse("data.mixture.schedule", fmt::format("nothing says the weights of the first {} steps", from),
                      "from: 0 for the first phase");
      if (from <= before)
        return refuse("data.mixture.schedule",
                      fmt::format("a phase from step {} comes after one from step {}", from, before),
                      "in the order of their steps");
      before = from;
    }
    for (std::size_t s = 0; s < mixture_.sources.size() && !mixture_.schedule.empty(); ++s)
      if (std::ranges::all_of(mixture_.schedule, [s](const Phase& phase) { return phase.weights[s] == 0; }))
        refuse("data.mixture.schedule",
               fmt::format("the source '{}' has no weight in any phase", mixture_.sources[s].name),
               "leave the source out");
  }

  const Workload& w_;
  const MixtureSpec& mixture_;
  std::vector<BrokenRule>& broken_;
};

}  // namespace

std::int64_t steps_of(const Portion& portion, std::int64_t whole) {
  return portion.steps + static_cast<std::int64_t>(std::llround(portion.fraction * static_cast<double>(whole)));
}

void check_mixture(const Workload& workload, std::vector<BrokenRule>& broken) {
  if (!workload.data.mixture.sources.empty()) Check(workload, broken).all();
}

void add_mixture_keys(Schema& schema) {
  using By = MixtureSpec::By;
  using Exhausted = MixtureSpec::Exhausted;
  const Condition mixed{"data.mixture.sources", {}};
  schema.sections.push_back({"data.mixture", "Several sources in place of data.train.files, in proportion.", {}, {}});
  auto& keys = schema.keys;
  keys.push_back({.path = "data.mixture.sources",
                  .codec = {.type = "map of name to the source's keys", .read = read_sources, .write = sources_node},
                  .doc = "The sources by name: { wiki: { files: wiki/*.txt, weight: 3 }, code: { .. } }.",
                  .more = "Each takes the keys of data.train, whose values are its defaults, and: weight, its share; "
                          "epochs, at most so many of it. Without weights they are drawn by size.",
                  .optional = true,
                  .when = {"data.kind", {"text"}}});
  keys.push_back(
      {.path = "data.mixture.by",
       .codec = choice_codec<By>(AT(data.mixture.by),
                                 {{"tokens", By::tokens}, {"documents", By::documents}, {"bytes", By::bytes}}),
       .doc = "What the weights count, and what the size of a source is.",
       .default_yaml = "tokens",
       .when = mixed});
  keys.push_back({.path = "data.mixture.temperature",
                  .codec = number_codec(AT(data.mixture.temperature), 0.01, 1000),
                  .doc = "Without weights, a source's is its size to the power of 1/temperature.",
                  .more = "1: in proportion to size. The larger, the more even: 3 or 5 are usual for languages.",
                  .default_yaml = "1",
                  .when = mixed});
  keys.push_back(
      {.path = "data.mixture.exhausted",
       .codec = choice_codec<Exhausted>(
           AT(data.mixture.exhausted),
           {{"repeat", Exhausted::repeat}, {"stop", Exhausted::stop}, {"rescale", Exhausted::rescale}}),
       .doc = "What happens when a source has given its `epochs`.",
       .more = "repeat: every source begins again, as often as the run needs. rescale: the others go on, in "
               "their proportion. stop: the data end there; a run of more steps is refused before it begins.",
       .derived = "rescale if a source has `epochs`, else repeat",
       .derive =
           [](Workload& w) {
             const bool limited =
                 std::ranges::any_of(w.data.mixture.sources, [](const Source& s) { return s.epochs.has_value(); });
             w.data.mixture.exhausted = limited ? Exhausted::rescale : Exhausted::repeat;
           },
       .when = mixed});
  keys.push_back({.path = "data.mixture.schedule",
                  .codec = {.type = "list of phases", .read = read_schedule, .write = schedule_node},
                  .doc = "Weights by step: [ { from: 0, wiki: 3, code: 1 }, { from: 60%, wiki: 1, code: 3 } ].",
                  .more = "From a step on, or from a share of train.steps. 0: nothing of the source in that phase.",
                  .optional = true,
                  .when = mixed});
}

}  // namespace systole
