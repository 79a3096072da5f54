#pragma once
// A reader for the rendered subset of HCL, which shares no code with the printer. For tests.

#include <cctype>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace systole {

struct ReadBlock {
  std::string type;
  std::vector<std::string> labels;
  nlohmann::json attributes =
      nlohmann::json::object();  // a reference is {"refers": "a.b"}, a template {"template": [..]}
  std::vector<ReadBlock> blocks;
};

class HclReader {
 public:
  // Throws std::runtime_error, with the line, if it is not HCL.
  static std::vector<ReadBlock> read(const std::string& text) {
    HclReader reader(text);
    ReadBlock all = reader.body(false);
    if (!all.attributes.empty()) reader.fail("an attribute outside of a block");
    return all.blocks;
  }

 private:
  explicit HclReader(const std::string& text) : text_(text) {}

  [[noreturn]] void fail(const std::string& what) const {
    long line = 1;
    for (std::size_t i = 0; i < at_ && i < text_.size(); ++i) line += text_[i] == '\n';
    throw std::runtime_error("line " + std::to_string(line) + ": " + what);
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void spaces() {
    while (peek() == ' ') ++at_;
  }
  void blank() {  // also lines and comments
    for (;;) {
      while (peek() == ' ' || peek() == '\n') ++at_;
      if (peek() != '#') return;
      while (at_ < text_.size() && peek() != '\n') ++at_;
    }
  }
  void need(char c) {
    if (peek() != c) fail(std::string("'") + c + "' is missing");
    ++at_;
  }
  std::string name() {
    std::string out;
    while (std::isalnum(static_cast<unsigned char>(peek())) || peek() == '_' || peek() == '-') out += text_[at_++];
    if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0]))) fail("no name");
    return out;
  }

  // A body ends with '}'; the outermost one ends with the text.
  ReadBlock body(bool inner) {
    ReadBlock block;
    for (;;) {
      blank();
      if (inner ? peek() == '}' : at_ >= text_.size()) break;
      const std::string word = name();
      spaces();
      if (peek() == '=') {
        ++at_;
        spaces();
        if (block.attributes.contains(word)) fail("'" + word + "' is there twice");
        block.attributes[word] = value();
        spaces();
        if (peek() != '\n') fail("something behind a value");
        continue;
      }
      ReadBlock made;
      std::vector<std::string> labels;
      while (peek() == '"') {
        const nlohmann::json label = quoted();
        if (!label.is_string()) fail("a template as a label");
        labels.push_back(label);
        spaces();
      }
      need('{');
      made = body(true);
      need('}');
      if (peek() != '\n') fail("something behind a block");
      made.type = word;
      made.labels = labels;
      block.blocks.push_back(std::move(made));
    }
    return block;
  }

  nlohmann::json value() {
    if (peek() == '"') return quoted();
    if (peek() == '[') return list();
    if (peek() == '{') return map();
    if (std::isdigit(static_cast<unsigned char>(peek())) || peek() == '-') {
      std::string digits;
      while (std::isdigit(static_cast<unsigned char>(peek())) || peek() == '-') digits += text_[at_++];
      return std::stoll(digits);
    }
    std::string path = name();
    if (path == "true" || path == "false") return path == "true";
    while (peek() == '.') {
      ++at_;
      path += "." + name();
    }
    return {{"refers", path}};
  }
  nlohmann::json list() {
    nlohmann::json all = nlohmann::json::array();
    need('[');
    for (blank(); peek() != ']'; blank()) {
      all.push_back(value());
      blank();
      if (peek() == ']') break;
      need(',');
    }
    need(']');
    return all;
  }
  nlohmann::json map() {
    nlohmann::json all = nlohmann::json::object();
    need('{');
    for (blank(); peek() != '}'; blank()) {
      const std::string key = peek() == '"' ? quoted().get<std::string>() : name();
      spaces();
      need('=');
      spaces();
      if (all.contains(key)) fail("'" + key + "' is there twice");
      all[key] = value();
      spaces();
      if (peek() == ',') ++at_;
      if (peek() != '\n') fail("a map's entries stand on lines of their own");
    }
    need('}');
    return all;
  }
  // A string; one with a template is {"template": [text, path, text, ...]}.
  nlohmann::json quoted() {
    need('"');
    nlohmann::json parts = nlohmann::json::array();
    std::string out;
    while (peek() != '"') {
      const char c = peek();
      const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
      if (c == '\0' && at_ >= text_.size()) fail("a string does not end");
      if (c == '\n') fail("a line ends within a string");
      if ((c == '$' || c == '%') && next == c && at_ + 2 < text_.size() && text_[at_ + 2] == '{') {
        out += c;
        out += '{';
        at_ += 3;
      } else if (c == '$' && next == '{') {
        at_ += 2;
        parts.push_back(out);
        out.clear();
        std::string path;
        while (peek() != '}' && at_ < text_.size()) path += text_[at_++];
        need('}');
        parts.push_back(path);
      } else if (c == '%' && next == '{') {
        fail("a directive");
      } else if (c == '\\') {
        at_ += 2;
        switch (next) {
          case 'n': out += '\n'; break;
          case 'r': out += '\r'; break;
          case 't': out += '\t'; break;
          case '"': out += '"'; break;
          case '\\': out += '\\'; break;
          case 'u': {
            const int code = std::stoi(text_.substr(at_, 4), nullptr, 16);
            if (code > 0x7f) fail("more than is rendered");
            out += static_cast<char>(code);
            at_ += 4;
            break;
          }
          default: fail("no such escape");
        }
      } else {
        out += c;
        ++at_;
      }
    }
    need('"');
    if (parts.empty()) return out;
    parts.push_back(out);
    return {{"template", parts}};
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

}  // namespace systole
