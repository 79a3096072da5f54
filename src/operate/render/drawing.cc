#include "operate/render/drawing.h"

#include <fmt/format.h>

#include "ground/base/error.h"
#include "operate/render/quote.h"

namespace systole {
namespace {

// Quoted; characters that would end the quote or be read as markup become entities.
std::string label(const std::string& text) {
  std::string out = "\"";
  for (const char c : comment_text(text)) {
    switch (c) {
      case '"': out += "#quot;"; break;
      case '#': out += "#35;"; break;
      case '<': out += "#lt;"; break;
      case '>': out += "#gt;"; break;
      case '&': out += "#amp;"; break;
      case '`': out += "#96;"; break;
      case '\\': out += "#92;"; break;
      case '*': out += "#42;"; break;
      case '_': out += "#95;"; break;
      case '$': out += "#36;"; break;
      case '%': out += "#37;"; break;
      default: out += c;
    }
  }
  return (out.size() == 1 ? out + " " : out) + '"';
}

}  // namespace

Drawing::Drawing(std::string comment) { text_ = fmt::format("%% {}\nflowchart TB\n", comment_text(comment)); }

void Drawing::line(const std::string& text) {
  text_ += std::string(static_cast<std::size_t>(2 * depth_), ' ') + text + '\n';
}

std::string Drawing::box(const std::string& text, Shape shape) {
  const std::string id = fmt::format("b{}", boxes_++);
  switch (shape) {
    case Shape::box: line(fmt::format("{}[{}]", id, label(text))); break;
    case Shape::cylinder: line(fmt::format("{}[({})]", id, label(text))); break;
    case Shape::stadium: line(fmt::format("{}([{}])", id, label(text))); break;
  }
  return id;
}

std::string Drawing::open(const std::string& text) {
  const std::string id = fmt::format("g{}", boxes_++);
  line(fmt::format("subgraph {}[{}]", id, label(text)));
  ++depth_;
  return id;
}

void Drawing::close() {
  CHECK(depth_ > 1, "nothing is open");
  --depth_;
  line("end");
}

void Drawing::join(const std::string& from, const std::string& to, const std::string& text) {
  joins_ +=
      text.empty() ? fmt::format("  {} --- {}\n", from, to) : fmt::format("  {} -- {} --- {}\n", from, label(text), to);
}

std::string Drawing::text() const {
  CHECK(depth_ == 1, "a box is open");
  return text_ + joins_;
}

}  // namespace systole
