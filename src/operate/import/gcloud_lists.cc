#include "operate/import/gcloud_lists.h"

namespace systole {

std::vector<std::string> gcloud_list(std::string_view text) {
  std::string between = ",";
  if (const std::size_t end = text.starts_with('^') ? text.find('^', 1) : text.npos; end != text.npos && end > 1) {
    between = text.substr(1, end - 1);
    text.remove_prefix(end + 1);
  }
  std::vector<std::string> items;
  while (!text.empty()) {
    const std::size_t end = text.find(between);
    items.emplace_back(text.substr(0, end));
    text = end == text.npos ? "" : text.substr(end + between.size());
  }
  return items;
}

std::vector<std::pair<std::string, std::string>> gcloud_map(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& item : gcloud_list(text)) {
    const std::size_t equals = item.find('=');
    pairs.emplace_back(item.substr(0, equals), equals == item.npos ? "" : item.substr(equals + 1));
  }
  return pairs;
}

}  // namespace systole
