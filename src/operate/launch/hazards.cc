// Reads a hazard file, and draws hazards from it.

#include <algorithm>
#include <array>
#include <cmath>

#include "ground/base/document.h"
#include "ground/base/nearest.h"
#include "ground/base/philox.h"
#include "ground/base/quantity.h"
#include "operate/launch/chaos.h"

namespace systole {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::array<HazardKind::What, 3> kKinds{HazardKind::What::kill, HazardKind::What::stop,
                                                 HazardKind::What::delay};

Status only(const Node& map, const std::vector<std::string>& known, const std::string& of) {
  if (!map.is_map()) return map.wrong(of + ", a map");
  for (const Node::Entry& entry : map.entries()) {
    if (std::find(known.begin(), known.end(), entry.key) != known.end()) continue;
    return error(ErrorKind::invalid, "{} has no '{}'", of, entry.key)
        .at(entry.where())
        .hinted(nearest_hint(entry.key, known));
  }
  return Done{};
}

Result<Seconds> time_of(const Node& node, bool may_be_zero) {
  if (!node.is_scalar()) return node.wrong("a time, as 30s");
  const std::string& text = node.text();
  Result<Seconds> time = parse_seconds(text);
  if (!time.ok())
    return error(ErrorKind::invalid, "{}", time.error().message).at(node.where()).hinted("30s, 250ms, 5min");
  if (*time > Seconds() || (may_be_zero && *time == Seconds())) return time;
  return error(ErrorKind::invalid, "a time above 0 is expected, found {}", text).at(node.where()).hinted("30s");
}

Result<double> weight_of(const Node& node) {
  const double weight = TRY(node.as_double());
  if (weight >= 0 && weight <= 1e9) return weight;
  return error(ErrorKind::invalid, "a weight is 0 or more, found {}", node.text()).at(node.where());
}

Result<HazardKind> kind_of(const Node::Entry& entry) {
  HazardKind kind;
  const auto what = std::find_if(kKinds.begin(), kKinds.end(), [&](auto w) { return entry.key == name_of(w); });
  if (what == kKinds.end()) {
    return error(ErrorKind::invalid, "there is no hazard '{}'", entry.key)
        .at(entry.where())
        .hinted("kill, stop or delay");
  }
  kind.what = *what;
  kind.lasts = kind.what == HazardKind::What::stop    ? Seconds(3.0)
               : kind.what == HazardKind::What::delay ? Seconds(0.2)
                                                      : Seconds();
  const Node& value = entry.value;
  if (!value.is_map()) {
    kind.weight = TRY(weight_of(value));
    return kind;
  }
  TRY(only(value, {"weight", "for"}, fmt::format("the hazard '{}'", entry.key)));
  if (const Node* weight = value.find("weight")) kind.weight = TRY(weight_of(*weight));
  const Node* lasts = value.find("for");
  if (lasts == nullptr) return kind;
  if (kind.what == HazardKind::What::kill)
    return error(ErrorKind::invalid, "a kill has no length").at(lasts->where()).hinted("kill: 3");
  kind.lasts = TRY(time_of(*lasts, false));
  return kind;
}

}  // namespace

const char* name_of(HazardKind::What what) {
  return what == HazardKind::What::kill ? "kill" : what == HazardKind::What::stop ? "stop" : "delay";
}

Result<HazardModel> read_hazards(std::string_view text, const std::string& file) {
  const Node document = TRY(parse_yaml(text, file));
  TRY(only(document, {"systole-chaos", "seed", "mean_time_between", "most", "spare", "kinds"}, "a hazard file"));
  const Node* version = document.find("systole-chaos");
  if (version == nullptr) {
    return error(ErrorKind::invalid, "'systole-chaos' is missing: is this a hazard file?")
        .at({file, 1, 1})
        .hinted("begin it with: systole-chaos: 1");
  }
  if (TRY(version->as_int(1)) > kVersion) {
    return error(ErrorKind::unsupported, "hazards of version {}; this systole reads version {}", version->text(),
                 kVersion)
        .at(version->where());
  }
  HazardModel model;
  if (const Node* seed = document.find("seed")) model.seed = static_cast<std::uint64_t>(TRY(seed->as_int(0)));
  if (const Node* most = document.find("most")) model.most = TRY(most->as_int(0));
  if (const Node* spare = document.find("spare")) model.spare = TRY(time_of(*spare, true));
  const Node* mean = document.find("mean_time_between");
  if (mean == nullptr) {
    return error(ErrorKind::invalid, "'mean_time_between' is missing: how often something befalls a rank")
        .at({file, 1, 1})
        .hinted("mean_time_between: 30s");
  }
  model.mean_time_between = TRY(time_of(*mean, false));
  const Node* kinds = document.find("kinds");
  if (kinds == nullptr) {
    model.kinds = {HazardKind{}};
    return model;
  }
  if (!kinds->is_map()) return kinds->wrong("hazards and their weights, as { kill: 3, stop: 1 }");
  double sum = 0;
  for (const Node::Entry& entry : kinds->entries()) {
    model.kinds.push_back(TRY(kind_of(entry)));
    sum += model.kinds.back().weight;
  }
  if (sum > 0) return model;
  return error(ErrorKind::invalid, "no hazard has a weight above 0").at(kinds->where()).hinted("kinds: { kill: 1 }");
}

// Words 0 and 1 draw the time, word 2 the rank, word 3 the kind.
Hazard hazard(const HazardModel& model, std::uint64_t n, int ranks) {
  const PhiloxBlock bits = philox(model.seed, philox_counter(n));
  Hazard drawn;
  const double mean = model.mean_time_between.count() / std::max(1, ranks);
  drawn.after = Seconds(-std::log1p(-uniform_f64(bits[0], bits[1])) * mean);
  drawn.which = static_cast<double>(uniform_f32(bits[2]));
  double sum = 0;
  for (const HazardKind& kind : model.kinds) sum += kind.weight;
  double at = static_cast<double>(uniform_f32(bits[3])) * sum;
  for (const HazardKind& kind : model.kinds) {
    if (kind.weight == 0) continue;
    drawn.kind = kind;
    if ((at -= kind.weight) < 0) break;
  }
  return drawn;
}

}  // namespace systole
