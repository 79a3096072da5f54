#include "execute/serve/balance/labelled_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace systole {
namespace {

struct Metric {
  std::string name, head, samples;
};

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == ':';
  });
}

// "name{labels} value" or "name value" with the label; "" if it is neither.
std::string labelled(std::string_view line, std::string_view name, int replica) {
  const std::string_view rest = line.substr(name.size());
  const std::size_t end = rest.rfind('}');
  if (rest.starts_with(' ')) return fmt::format("{}{{replica=\"{}\"}}{}\n", name, replica, rest);
  if (!rest.starts_with('{') || end == rest.npos) return {};
  const std::string_view labels = rest.substr(1, end - 1);
  return fmt::format("{}{{{}{}replica=\"{}\"}}{}\n", name, labels, labels.empty() ? "" : ",", replica,
                     rest.substr(end + 1));
}

}  // namespace

std::string labelled_metrics(const std::vector<std::pair<int, std::string>>& texts) {
  std::vector<Metric> metrics;
  const auto metric = [&](std::string_view name) -> Metric& {
    const auto found = std::ranges::find(metrics, name, &Metric::name);
    return found != metrics.end() ? *found : metrics.emplace_back(Metric{std::string(name), {}, {}});
  };
  for (const auto& [replica, text] : texts) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      const std::string_view line = std::string_view(text).substr(begin, end - begin);
      begin = end + 1;
      const bool is_head = line.starts_with("# HELP ") || line.starts_with("# TYPE ");
      const std::string_view rest = line.substr(is_head ? 7 : 0);
      const std::string_view name = rest.substr(0, rest.find_first_of(" {"));
      if (!is_name(name)) continue;
      Metric& of = metric(name);
      if (!is_head) {
        of.samples += labelled(line, name, replica);
      } else if (of.head.find(line.substr(0, 7)) == std::string::npos) {
        of.head += std::string(line) + "\n";
      }
    }
  }
  std::string all;
  for (const Metric& each : metrics) all += each.head + each.samples;
  return all;
}

}  // namespace systole
