#pragma once
// A job as a picture: text of Mermaid (mermaid.js.org), which web pages and editors draw.

#include <string>
#include <vector>

namespace systole {

// A flowchart that grows by boxes within boxes. Names of boxes are ours; what stands in them is any text.
class Drawing {
 public:
  explicit Drawing(std::string comment);

  enum class Shape { box, cylinder, stadium };
  std::string box(const std::string& text, Shape shape = Shape::box);  // its id
  std::string open(const std::string& text);                           // a box for those that follow, until close
  void close();
  void join(const std::string& from, const std::string& to, const std::string& text = "");
  std::string text() const;  // REQUIRES: all are closed

 private:
  void line(const std::string& text);
  std::string text_, joins_;
  int boxes_ = 0, depth_ = 1;
};

}  // namespace systole
