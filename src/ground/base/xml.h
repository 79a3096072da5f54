#pragma once
// A strict reader of small XML documents of servers: elements and their text. Attributes are checked and dropped, and
// so are prefixes of namespaces, comments and the declaration. There are no entities but the five predefined ones and
// characters by number; a document type is refused, so that nothing can be included or expanded. Depth and the number
// of elements are bounded.

#include <string>
#include <string_view>
#include <vector>

#include "ground/base/result.h"

namespace systole {

struct XmlElement {
  std::string name;
  std::string text;  // directly in it, joined; with its spaces
  std::vector<XmlElement> children;

  const XmlElement* find(std::string_view child) const;  // the first of that name, or null
  std::string text_of(std::string_view child) const;     // of that child, or ""
};

// The root. `what` is for messages, which repeat nothing of the text. Errors: corrupt.
Result<XmlElement> parse_xml(std::string_view text, std::string_view what);
// With `<`, `>` and `&` as entities, and what no document may contain as '?'.
std::string xml_escaped(std::string_view text);

}  // namespace systole
