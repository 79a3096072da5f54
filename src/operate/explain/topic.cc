#include "operate/explain/topic.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "operate/explain/topic_lists.h"

namespace systole {
namespace {

struct GroupText {
  TopicGroup group;
  const char* heading;
};
constexpr GroupText kGroups[] = {{TopicGroup::idea, "training and planning"},
                                 {TopicGroup::feature, "what a platform has"},
                                 {TopicGroup::question, "questions"},
                                 {TopicGroup::term, "terms of the cloud"}};

std::string plain(std::string_view name) {
  std::string text(name);
  for (char& c : text) c = c == '_' || c == ' ' ? '-' : c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

// Related topics as links within the page.
std::string related_links(const Topic& topic) {
  std::vector<std::string> links;
  for (const std::string& name : split_words(topic.related))
    links.push_back(fmt::format("[{}](#{})", find_topic(name)->title, name));
  return fmt::format("{}", fmt::join(links, ", "));
}

// Link to the key in docs/reference/keys.md.
std::string key_link(const std::string& key) {
  const std::size_t dot = key.rfind('.');
  const std::string section = dot == key.npos ? "the-document" : key.substr(0, dot);
  std::string anchor;
  for (const char c : section)
    if (c != '.') anchor += c;
  return fmt::format("[`{}`](keys.md#{})", key, anchor);
}

// A topic on the glossary page; its name is the anchor.
std::string entry(const Topic& topic) {
  std::vector<std::string> links;
  for (const std::string& key : split_words(topic.keys)) links.push_back(key_link(key));
  return fmt::format("\n<a id=\"{}\"></a>\n\n### {}\n\n{}\n\nKeys: {}. See also: {}. `systole explain {}`\n",
                     topic.name, topic.title, topic.text, fmt::join(links, ", "), related_links(topic), topic.name);
}

}  // namespace

std::vector<std::string> split_words(const char* text) {
  std::vector<std::string> words;
  std::string word;
  for (const char* c = text;; ++c) {
    if (*c != ' ' && *c != '\0') {
      word += *c;
      continue;
    }
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
    if (*c == '\0') return words;
  }
}

std::span<const Topic* const> topics() {
  static const std::vector<const Topic*> all = [] {
    std::vector<const Topic*> made;
    for (const std::span<const Topic> group : {idea_topics(), feature_topics(), question_topics(), term_topics()})
      for (const Topic& topic : group) made.push_back(&topic);
    return made;
  }();
  return all;
}

const Topic* find_topic(std::string_view name) {
  const std::string asked = plain(name);
  for (const Topic* topic : topics())
    if (asked == topic->name) return topic;
  for (const Topic* topic : topics())
    if (std::ranges::count(split_words(topic->also), asked) > 0) return topic;
  return nullptr;
}

std::vector<std::string> topic_names() {
  std::vector<std::string> names;
  for (const Topic* topic : topics()) names.emplace_back(topic->name);
  return names;
}

std::string value_text(const Workload& workload, std::string_view key) {
  Node at = to_node(workload);
  for (std::string_view rest = key; !rest.empty();) {
    const std::size_t dot = std::min(rest.find('.'), rest.size());
    const Node* below = at.find(rest.substr(0, dot));
    if (below == nullptr) return "not set";
    at = Node(*below);
    rest.remove_prefix(std::min(rest.size(), dot + 1));
  }
  if (at.is_null()) return "not set";
  return at.is_scalar() ? at.text() : to_json(at);
}

Result<TopicAnswer> answer_topic(const Topic& topic, const TopicFacts& facts) {
  TopicAnswer lines;
  if (topic.answer != nullptr) TRY(topic.answer(facts, lines));
  if (facts.workload != nullptr)
    for (const std::string& key : split_words(topic.keys))
      lines.workload.push_back(fmt::format("{}: {}", key, value_text(*facts.workload, key)));
  return lines;
}

std::string topic_text(const Topic& topic, const TopicAnswer& lines, const TopicFacts& facts) {
  std::string text = fmt::format("{}\n  {}\n", topic.title, topic.text);
  text += fmt::format("  keys: {}\n", fmt::join(split_words(topic.keys), ", "));
  text += fmt::format("  see also: {}\n", fmt::join(split_words(topic.related), ", "));
  if (!lines.workload.empty()) text += fmt::format("in {}\n", facts.workload_name);
  for (const std::string& line : lines.workload) text += fmt::format("  {}\n", line);
  if (!lines.catalog.empty()) text += fmt::format("in the catalog of {}\n", facts.catalog->date());
  for (const std::string& line : lines.catalog) text += fmt::format("  {}\n", line);
  return text;
}

std::string topics_list() {
  std::size_t widest = 0;
  for (const Topic* topic : topics()) widest = std::max(widest, std::string_view(topic->name).size());
  std::string text;
  for (const GroupText& group : kGroups) {
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n", group.heading);
    for (const Topic* topic : topics())
      if (topic->group == group.group) text += fmt::format("  {:<{}}  {}\n", topic->name, widest, topic->title);
  }
  return text;
}

std::string glossary_reference() {
  std::string text =
      "# Glossary\n\nPrinted by `systole reference docs/reference`; a test fails when this page is stale.\n"
      "`systole explain TOPIC job.yaml` says what holds for a workload; `systole explain topics` lists all topics.\n";
  std::vector<const Topic*> terms;
  for (const Topic* topic : topics())
    if (topic->in_glossary) terms.push_back(topic);
  std::ranges::sort(terms, {}, [](const Topic* topic) { return plain(topic->title); });
  text += "\n## terms\n";
  for (const Topic* topic : terms) text += entry(*topic);
  for (const GroupText& group : kGroups) {
    if (group.group == TopicGroup::term) continue;  // all of them are listed above
    text += fmt::format("\n## {}\n", group.heading);
    for (const Topic* topic : topics())
      if (topic->group == group.group && !topic->in_glossary) text += entry(*topic);
  }
  return text;
}

}  // namespace systole
