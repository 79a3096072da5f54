#include "describe/spec/codec_parts.h"

#include <algorithm>
#include <limits>
#include <sstream>

#include "ground/base/nearest.h"
#include "ground/base/quantity.h"

namespace systole {

Result<std::int64_t> read_count(const Node& node, std::int64_t lowest, std::int64_t highest) {
  if (node.kind() != NodeKind::number && node.kind() != NodeKind::string) return node.wrong("a count");
  const bool negative = node.kind() == NodeKind::number && node.text().starts_with('-');
  const std::int64_t count = negative ? std::numeric_limits<std::int64_t>::min() : TRY(as_count(node));
  if (count >= lowest && count <= highest) return count;
  return error(ErrorKind::invalid, "{} is {}", node.text(), count < lowest ? "too low" : "too high")
      .at(node.where())
      .hinted(fmt::format("{} to {}", with_commas(lowest), with_commas(highest)));
}

namespace {

std::string count_range(std::int64_t lowest, std::int64_t highest) {
  return fmt::format("{} to {}", with_commas(lowest), with_commas(highest));
}

Result<double> read_fraction(const Node& node) {
  double value = 0;
  if (node.kind() == NodeKind::string && node.text().ends_with('%')) {
    const Node number(NodeKind::number, node.text().substr(0, node.text().size() - 1), node.place());
    value = TRY(number.as_double()) / 100;
  } else {
    value = TRY(node.as_double());
  }
  if (value >= 0 && value <= 1) return value;
  return error(ErrorKind::invalid, "{} is no fraction", node.text()).at(node.where()).hinted("0 to 1, or 0% to 100%");
}

Node bytes_node(Bytes bytes) {
  const std::pair<Bytes, const char*> units[] = {{kGiB, "GiB"}, {kMiB, "MiB"}, {kKiB, "KiB"}};
  for (const auto& [unit, name] : units) {
    if (bytes > Bytes{} && bytes.count() % unit.count() == 0)
      return fmt::format("{}{}", bytes.count() / unit.count(), name);
  }
  return fmt::format("{}B", bytes.count());
}

// Without an exponent, which no reader of times takes.
Node seconds_node(Seconds seconds) {
  std::string digits = fmt::format("{}", seconds.count());
  if (digits.find('e') != digits.npos) {
    digits = fmt::format("{:.12f}", seconds.count());
    digits.erase(digits.find_last_not_of('0') + 1);
    if (digits.ends_with('.')) digits.pop_back();
  }
  return digits + "s";
}

Result<Bytes> read_bytes(const Node& node, Bytes lowest) {
  if (node.kind() == NodeKind::number) {
    return error(ErrorKind::invalid, "{} has no unit", node.text())
        .at(node.where())
        .hinted("such as 512MiB, 8GiB or 2GB");
  }
  if (node.kind() != NodeKind::string) return node.wrong("a number of bytes");
  const Bytes bytes = TRY(as_bytes(node));
  if (bytes >= lowest) return bytes;
  return error(ErrorKind::invalid, "{} is too low", node.text())
      .at(node.where())
      .hinted(fmt::format("{} or more", bytes_node(lowest).text()));
}

Result<Seconds> read_seconds(const Node& node) {
  if (node.kind() == NodeKind::number) {
    return error(ErrorKind::invalid, "{} has no unit", node.text()).at(node.where()).hinted("such as 90s, 15min or 2h");
  }
  if (node.kind() != NodeKind::string) return node.wrong("a time");
  const Seconds seconds = TRY(as_seconds(node));
  if (seconds > Seconds{}) return seconds;
  return error(ErrorKind::invalid, "{} is no time to work in", node.text()).at(node.where()).hinted("above 0s");
}

constexpr std::int64_t kMostSteps = 1'000'000'000'000;

}  // namespace

Codec count_codec(Field<std::int64_t> at, std::int64_t lowest, std::int64_t highest) {
  Codec c = codec<std::int64_t>(
      "count", at, [=](const Node& node) { return read_count(node, lowest, highest); },
      [](const std::int64_t& value) { return Node(value); });
  c.range = count_range(lowest, highest);
  return c;
}

Codec optional_count_codec(Field<std::optional<std::int64_t>> at, std::int64_t lowest, std::int64_t highest) {
  Codec c = optional_codec<std::int64_t>(
      "count", at, [=](const Node& node) { return read_count(node, lowest, highest); },
      [](const std::int64_t& value) { return Node(value); });
  c.range = count_range(lowest, highest);
  return c;
}

Codec counts_codec(Field<std::vector<std::int64_t>> at, std::int64_t lowest, std::int64_t highest) {
  Codec c = codec<std::vector<std::int64_t>>(
      "list of counts", at,
      [=](const Node& node) {
        return read_list<std::int64_t>(node, [=](const Node& item) { return read_count(item, lowest, highest); });
      },
      list_node<std::int64_t>);
  c.range = count_range(lowest, highest);
  return c;
}

Codec number_codec(Field<double> at, double lowest, double highest, bool open) {
  const bool endless = highest == std::numeric_limits<double>::infinity();
  const std::string range = endless ? fmt::format("{} {}", open ? "above" : "at least", lowest)
                            : open  ? fmt::format("above {}, at most {}", lowest, highest)
                                    : fmt::format("{} to {}", lowest, highest);
  Codec c = codec<double>(
      "number", at,
      [=](const Node& node) -> Result<double> {
        const double value = TRY(node.as_double());
        if ((open ? value > lowest : value >= lowest) && value <= highest) return value;
        return error(ErrorKind::invalid, "{} is outside the range", node.text()).at(node.where()).hinted(range);
      },
      [](const double& value) { return Node(value); });
  c.range = range;
  return c;
}

Codec fraction_codec(Field<double> at) {
  Codec c = codec<double>("fraction", at, read_fraction, [](const double& value) { return Node(value); });
  c.range = "0 to 1, or 0% to 100%";
  return c;
}

Codec bool_codec(Field<bool> at) {
  return codec<bool>(
      "true or false", at, [](const Node& node) { return node.as_bool(); },
      [](const bool& value) { return Node(value); });
}

Codec flag_codec(Field<bool> at) {
  Codec codec = bool_codec(at);
  codec.write = [at](Workload& w) { return at(w) ? Node(true) : Node(); };
  return codec;
}

Codec text_codec(Field<std::string> at) {
  return codec<std::string>("text", at, read_text,
                            [](const std::string& value) { return value.empty() ? Node() : Node(value); });
}

Codec texts_codec(Field<std::vector<std::string>> at) {
  return codec<std::vector<std::string>>(
      "text or list of text", at, [](const Node& node) { return read_list<std::string>(node, read_text); },
      [](const std::vector<std::string>& values) { return values.empty() ? Node() : list_node(values); });
}

Codec command_codec(Field<std::vector<std::string>> at) {
  const auto read = [](const Node& node) -> Result<std::vector<std::string>> {
    std::vector<std::string> words;
    if (node.is_scalar()) {
      std::istringstream text(TRY(read_text(node)));
      for (std::string word; text >> word;) words.push_back(word);
    } else {
      words = TRY(read_list<std::string>(node, read_text));
    }
    if (!words.empty() && !words.front().empty()) return words;
    return error(ErrorKind::invalid, "names no program").at(node.where()).hinted("python3 train.py --steps 100");
  };
  return codec<std::vector<std::string>>("text or list of text", at, read, [](const std::vector<std::string>& words) {
    return words.empty() ? Node() : list_node(words);
  });
}

Codec bytes_codec(Field<Bytes> at, Bytes lowest) {
  Codec c = codec<Bytes>(
      "bytes", at, [=](const Node& node) { return read_bytes(node, lowest); }, bytes_node);
  c.range = bytes_node(lowest).text() + " or more";
  return c;
}

Codec optional_bytes_codec(Field<std::optional<Bytes>> at, Bytes lowest) {
  Codec c = optional_codec<Bytes>(
      "bytes", at, [=](const Node& node) { return read_bytes(node, lowest); }, bytes_node);
  c.range = bytes_node(lowest).text() + " or more";
  return c;
}

Codec optional_seconds_codec(Field<std::optional<Seconds>> at) {
  return optional_codec<Seconds>("time", at, read_seconds, seconds_node);
}

Codec optional_range_codec(Field<std::optional<CountRange>> at, std::int64_t lowest, std::int64_t highest) {
  const auto read = [lowest, highest](const Node& node) -> Result<CountRange> {
    const std::size_t colon = node.text().find(':');
    if (colon == std::string::npos) {
      const std::int64_t n = TRY(read_count(node, lowest, highest));
      return CountRange{n, n};
    }
    const auto part = [&](std::string text) {
      return read_count(Node(NodeKind::string, text, node.place()), lowest, highest);
    };
    const CountRange range{TRY(part(node.text().substr(0, colon))), TRY(part(node.text().substr(colon + 1)))};
    if (range.least <= range.most) return range;
    return error(ErrorKind::invalid, "{} is above {}", range.least, range.most)
        .at(node.where())
        .hinted(fmt::format("{}:{}", range.most, range.least));
  };
  Codec c = optional_codec<CountRange>("count or A:B", at, read, [](const CountRange& range) {
    return range.elastic() ? Node(fmt::format("{}:{}", range.least, range.most)) : Node(range.least);
  });
  c.range = count_range(lowest, highest);
  return c;
}

Codec interval_codec(Field<Interval> at) {
  return codec<Interval>(
      "steps, a time, or never", at,
      [](const Node& node) -> Result<Interval> {
        if (is(node, "never")) return Interval{};
        if (node.kind() == NodeKind::number) return Interval{TRY(read_count(node, 1, kMostSteps)), {}};
        Result<Seconds> time = read_seconds(node);
        if (!time.ok()) return nearly(node, std::move(time).error(), {"never"});
        return Interval{0, *time};
      },
      [](const Interval& value) {
        if (value.never()) return Node("never");
        return value.steps > 0 ? Node(value.steps) : seconds_node(value.time);
      });
}

Codec portion_codec(Field<Portion> at) {
  return codec<Portion>(
      "steps, or a fraction of the run such as 5%", at,
      [](const Node& node) -> Result<Portion> {
        if (node.kind() == NodeKind::string && node.text().ends_with('%')) return Portion{0, TRY(read_fraction(node))};
        return Portion{TRY(read_count(node, 0, kMostSteps)), 0};
      },
      [](const Portion& value) {
        return value.fraction > 0 ? Node(fmt::format("{}%", value.fraction * 100)) : Node(value.steps);
      });
}

Codec named_codec(std::vector<std::string> names, std::function<void(Workload&, std::size_t)> set,
                  std::function<std::size_t(Workload&)> get, std::vector<std::string> later) {
  Codec c;
  c.type = "name";
  c.allowed = names;
  c.read = [names, set, later](const Node& node, Workload& w) -> Status {
    if (!node.is_scalar()) return node.wrong("one of " + fmt::format("{}", fmt::join(names, ", ")));
    const auto found = std::ranges::find(names, node.text());
    if (found != names.end()) {
      set(w, static_cast<std::size_t>(found - names.begin()));
      return Done{};
    }
    if (std::ranges::find(later, node.text()) != later.end()) {
      return error(ErrorKind::unsupported, "'{}' is not in this version yet", node.text())
          .at(node.where())
          .hinted(fmt::format("one of {}", fmt::join(names, ", ")));
    }
    return error(ErrorKind::invalid, "'{}' is none of {}", node.text(), fmt::join(names, ", "))
        .at(node.where())
        .hinted(nearest_hint(node.text(), names));
  };
  c.write = [names, get](Workload& w) { return Node(names[get(w)]); };
  return c;
}

Codec labels_codec(Field<std::map<std::string, std::string>> at) {
  using Labels = std::map<std::string, std::string>;
  return codec<Labels>(
      "map of text", at,
      [](const Node& node) -> Result<Labels> {
        if (!node.is_map()) return node.wrong("a map of text");
        Labels labels;
        for (const Node::Entry& entry : node.entries()) labels[entry.key] = TRY(read_text(entry.value));
        return labels;
      },
      [](const Labels& labels) {
        Node node;
        for (const auto& [name, value] : labels) node.set(name, value);
        return node;
      });
}

Codec reserved_codec(std::string reason) {
  Codec c;
  c.type = "reserved";
  c.read = [reason](const Node& node, Workload&) -> Status {
    return error(ErrorKind::unsupported, "{}", reason).at(node.where()).hinted("take this key out");
  };
  c.write = [](Workload&) { return Node(); };
  return c;
}

}  // namespace systole
