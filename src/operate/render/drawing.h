#pragma once
// Draws a job as a Mermaid flowchart (mermaid.js.org), which web pages and editors render.

#include <string>
#include <vector>

namespace systole {

// A flowchart of nested boxes. Box ids are generated; labels may be any text.
class Drawing {
 public:
  explicit Drawing(std::string comment);

  enum class Shape { box, cylinder, stadium };
  std::string box(const std::string& text, Shape shape = Shape::box);  // returns its id
  std::string open(const std::string& text);                           // opens a box around the following ones, until
                                                                       // close
  void close();
  void join(const std::string& from, const std::string& to, const std::string& text = "");
  std::string text() const;  // REQUIRES: all are closed

 private:
  void line(const std::string& text);
  std::string text_, joins_;
  int boxes_ = 0, depth_ = 1;
};

}  // namespace systole
