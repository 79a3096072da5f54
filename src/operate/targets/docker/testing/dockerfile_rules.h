#pragma once
// A reader of the subset of Dockerfile grammar that is rendered, as BuildKit reads it, and further rules for our files.
// For tests.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "ground/base/document.h"
#include "ground/catalog/image.h"

namespace systole {

struct DockerInstruction {
  std::string name, rest;
};

// Instruction lines; comments are lines of their own, '\' at the end of a line continues it.
inline std::vector<DockerInstruction> dockerfile_of(const std::string& text) {
  std::vector<DockerInstruction> all;
  std::string line;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string now = text.substr(at, end - at);
    at = end + 1;
    if (now.find_first_not_of(" \t") == now.npos || now[0] == '#') continue;
    const bool goes_on = now.back() == '\\';
    if (goes_on) now.pop_back();
    line += now;
    if (goes_on) continue;
    const std::size_t space = std::min(line.find(' '), line.size());
    all.push_back({line.substr(0, space), line.substr(std::min(space + 1, line.size()))});
    line.clear();
  }
  return all;
}

// Reads "a"="b" as BuildKit's lexer does: within quotes, '\' escapes only '"', '\' and '$', and $X would be
// substituted. Empty: unreadable, or something would be substituted.
inline std::vector<std::string> quoted_pair(const std::string& text) {
  std::vector<std::string> pair(1);
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      inside = !inside;
    } else if (!inside && c == '=' && pair.size() == 1) {
      pair.emplace_back();
    } else if (!inside) {
      return {};
    } else if (c == '\\' && i + 1 < text.size() && std::string("\"\\$").find(text[i + 1]) != std::string::npos) {
      pair.back() += text[++i];
    } else if (c == '$') {
      return {};
    } else {
      pair.back() += c;
    }
  }
  return inside || pair.size() != 2 ? std::vector<std::string>() : pair;
}

// Faults of the file; empty: none. `beside`: files that may be copied.
inline std::vector<std::string> dockerfile_faults(const std::string& text, const std::set<std::string>& beside) {
  std::vector<std::string> faults;
  const auto fault = [&](const std::string& what) { faults.push_back(what); };
  std::set<std::string> stages;
  std::string user, entry;
  int images = 0;
  const auto words_of = [](const std::string& rest) {
    std::vector<std::string> words(1);
    for (const char c : rest) {
      if (c != ' ') {
        words.back() += c;
      } else if (!words.back().empty()) {
        words.emplace_back();
      }
    }
    return words;
  };
  for (const DockerInstruction& each : dockerfile_of(text)) {
    const std::vector<std::string> words = words_of(each.rest);
    if (images == 0 && each.name != "FROM") fault(each.name + " stands before FROM");
    if (each.name == "FROM") {
      ++images;
      user = entry = "";
      const std::string& image = words[0];
      const std::size_t at = image.find('@');
      const std::string tagged = image.substr(0, at);
      const std::size_t colon = tagged.rfind(':');
      if (at != image.npos ? !is_image_digest(image.substr(at + 1))
                           : colon == tagged.npos || is_floating_tag(tagged.substr(colon + 1)))
        fault("FROM " + image + " is not pinned");
      if (words.size() == 3 && words[1] == "AS") {
        stages.insert(words[2]);
      } else if (words.size() != 1) {
        fault("FROM " + each.rest);
      }
    } else if (each.name == "COPY") {
      std::size_t from = 0;
      std::string stage;
      for (; from < words.size() && words[from].starts_with("--"); ++from) {
        if (words[from].starts_with("--from=")) {
          stage = words[from].substr(7);
        } else if (words[from] != "--chmod=755") {
          fault("COPY " + words[from]);
        }
      }
      if (words.size() < from + 2) fault("COPY " + each.rest);
      if (!stage.empty() && !stages.contains(stage)) fault("COPY --from=" + stage + ": no such stage");
      for (std::size_t w = from; stage.empty() && w + 1 < words.size(); ++w)
        if (!beside.contains(words[w])) fault("COPY " + words[w] + ": no such file");
    } else if (each.name == "USER") {
      user = each.rest;
    } else if (each.name == "ENTRYPOINT") {
      const Result<Node> list = parse_json(each.rest, "ENTRYPOINT");
      if (!list.ok() || !list->is_sequence() || list->items().empty()) fault("ENTRYPOINT is no list of words");
      entry = each.rest;
    } else if (each.name == "LABEL") {
      if (quoted_pair(each.rest).empty()) fault("LABEL " + each.rest);
    } else if (each.name == "ENV") {
      if (words.size() != 1 || each.rest.find('=') == std::string::npos || each.rest.find('$') != std::string::npos)
        fault("ENV " + each.rest);
    } else if (each.name == "EXPOSE") {
      if (each.rest.empty() || each.rest.find_first_not_of("0123456789") != std::string::npos)
        fault("EXPOSE " + each.rest);
    } else if (each.name == "HEALTHCHECK") {
      const std::size_t command = each.rest.find("CMD ");
      const Result<Node> list = parse_json(command == std::string::npos ? "" : each.rest.substr(command + 4), "CMD");
      if (!list.ok() || !list->is_sequence() || list->items().empty()) fault("HEALTHCHECK has no list of words");
    } else if (each.name != "RUN") {
      fault(each.name + " is not written here");
    }
  }
  if (images == 0) fault("no FROM");
  if (entry.empty()) fault("no ENTRYPOINT");
  if (user.empty() || user.starts_with("0") || user.find_first_not_of("0123456789:") != user.npos)
    fault("it runs as '" + user + "'");
  return faults;
}

}  // namespace systole
